#include "policy/transformer.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "policy/files.hpp"
#include "tasks/safetensors.hpp"

namespace hone {
namespace {

using nlohmann::json;

at::ScalarType scalar_type(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  throw policy_error("a dtype of " + name + "; float32, bfloat16 and float16 are supported");
}

struct stored_type {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array<stored_type, 4> stored_types = {
    {{"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf}, {"F64", at::kDouble}}};

// Maps a whole file into memory for reading. The constructor throws policy_error.
class mapped_file {
 public:
  explicit mapped_file(const std::filesystem::path& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    if (fd < 0 || fstat(fd, &facts) != 0) {
      if (fd >= 0) close(fd);
      throw policy_error(path.string() + ": cannot be opened");
    }
    bytes_ = static_cast<std::size_t>(facts.st_size);
    void* mapped = bytes_ > 0 ? mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
    close(fd);
    if (mapped == MAP_FAILED) throw policy_error(path.string() + ": cannot be read");
    base_ = mapped;
  }
  ~mapped_file() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(base_), bytes_}; }

 private:
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

// Returns names and shapes of the weights that a config requires, in the order of the network.
std::vector<std::pair<std::string, std::vector<std::int64_t>>> expected_shapes(
    const decoder_config& c) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    shapes.emplace_back(name, std::move(shape));
  };
  add("model.embed_tokens.weight", {c.vocabulary, c.width});
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.";
    add(layer + "input_layernorm.weight", {c.width});
    const auto project = [&](const std::string& name, std::int64_t out, std::int64_t in,
                             bool bias) {
      add(name + ".weight", {out, in});
      if (bias) add(name + ".bias", {out});
    };
    project(attention + "q_proj", c.heads * c.head_width, c.width, c.attention_bias);
    project(attention + "k_proj", c.kv_heads * c.head_width, c.width, c.attention_bias);
    project(attention + "v_proj", c.kv_heads * c.head_width, c.width, c.attention_bias);
    project(attention + "o_proj", c.width, c.heads * c.head_width, c.output_bias);
    if (c.head_norm) {
      add(attention + "q_norm.weight", {c.head_width});
      add(attention + "k_norm.weight", {c.head_width});
    }
    add(layer + "post_attention_layernorm.weight", {c.width});
    project(layer + "mlp.gate_proj", c.feed_forward, c.width, c.mlp_bias);
    project(layer + "mlp.up_proj", c.feed_forward, c.width, c.mlp_bias);
    project(layer + "mlp.down_proj", c.width, c.feed_forward, c.mlp_bias);
  }
  add("model.norm.weight", {c.width});
  if (!c.tied_head) add("lm_head.weight", {c.vocabulary, c.width});
  return shapes;
}

// Reads config values. Errors are policy_error with a message that names the file and the key.
class config_reader {
 public:
  config_reader(const json& values, std::string file) : values_(&values), file_(std::move(file)) {}
  std::int64_t size(const char* key, std::int64_t otherwise = -1) const {
    if (!values_->contains(key) || (*values_)[key].is_null()) {
      if (otherwise < 0) refuse(key, "is missing");
      return otherwise;
    }
    if (!(*values_)[key].is_number_integer() || (*values_)[key].get<std::int64_t>() <= 0)
      refuse(key, "must be a whole number above 0");
    return (*values_)[key].get<std::int64_t>();
  }
  double number(const char* key, double otherwise) const {
    return value<double>(key, otherwise, "a number");
  }
  bool flag(const char* key, bool otherwise) const {
    return value<bool>(key, otherwise, "true or false");
  }
  std::string text(const char* key, const std::string& otherwise) const {
    return value<std::string>(key, otherwise, "a string");
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& problem) const {
    throw policy_error(file_ + ": " + key + ": " + problem);
  }

 private:
  template <class T>
  T value(const char* key, T otherwise, const char* expected) const {
    if (!values_->contains(key) || (*values_)[key].is_null()) return otherwise;
    try {
      return (*values_)[key].get<T>();
    } catch (const json::exception&) {
      refuse(key, std::string("must be ") + expected);
    }
  }
  const json* values_;
  std::string file_;
};

void read_rope_scaling(const json& file, const config_reader& reader, decoder_config& c) {
  // Newer versions of the transformers package write all rotary parameters into one object.
  const char* key = file.contains("rope_parameters") && file["rope_parameters"].is_object()
                        ? "rope_parameters"
                        : "rope_scaling";
  if (!file.contains(key) || file[key].is_null()) return;
  const json& scaling = file[key];
  if (!scaling.is_object()) reader.refuse(key, "must be an object");
  const config_reader inner(scaling, "config.json: " + std::string(key));
  c.rope_theta = inner.number("rope_theta", c.rope_theta);
  const std::string type = inner.text("rope_type", inner.text("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "llama3")
    reader.refuse(key, "type '" + type + "' is not supported, expected linear or llama3");
  c.rope_scaling = type;
  c.rope_factor = inner.number("factor", 1);
  c.rope_low_frequency = inner.number("low_freq_factor", 1);
  c.rope_high_frequency = inner.number("high_freq_factor", 4);
  c.rope_original_context =
      inner.number("original_max_position_embeddings", static_cast<double>(c.context));
}

at::Tensor rotate_half(const at::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return at::cat({-halves[1], halves[0]}, -1);
}

}  // namespace

decoder_config decoder_config::load(const std::filesystem::path& path) {
  const std::string text = read_policy_file(path);
  json file;
  try {
    file = json::parse(text);
  } catch (const json::exception& e) {
    throw policy_error(path.string() + ": is no JSON: " + e.what());
  }
  if (!file.is_object()) throw policy_error(path.string() + ": is no JSON object");
  const config_reader reader(file, path.string());
  const std::string type = reader.text("model_type", "llama");
  if (type != "llama" && type != "qwen2" && type != "qwen3" && type != "mistral")
    reader.refuse("model_type",
                  "'" + type + "' is not supported, expected llama, mistral, qwen2 or qwen3");
  decoder_config c;
  c.vocabulary = reader.size("vocab_size");
  c.width = reader.size("hidden_size");
  c.layers = reader.size("num_hidden_layers");
  c.heads = reader.size("num_attention_heads");
  c.kv_heads = reader.size("num_key_value_heads", c.heads);
  c.head_width = reader.size("head_dim", c.width / c.heads);
  c.feed_forward = reader.size("intermediate_size");
  c.context = reader.size("max_position_embeddings", 2048);
  c.norm_epsilon = reader.number("rms_norm_eps", 1e-6);
  c.rope_theta = reader.number("rope_theta", 10000);
  c.tied_head = reader.flag("tie_word_embeddings", false);
  c.attention_bias = reader.flag("attention_bias", type == "qwen2");
  c.output_bias = type == "llama" && c.attention_bias;
  c.mlp_bias = reader.flag("mlp_bias", false);
  c.head_norm = type == "qwen3";
  c.initializer_range = reader.number("initializer_range", 0.02);
  c.dtype = reader.text("dtype", reader.text("torch_dtype", "float32"));
  scalar_type(c.dtype);
  if (file.contains("eos_token_id") && !file["eos_token_id"].is_null()) {
    const json& end = file["eos_token_id"].is_array() && !file["eos_token_id"].empty()
                          ? file["eos_token_id"][0]
                          : file["eos_token_id"];
    if (!end.is_number_integer())
      reader.refuse("eos_token_id", "must be a token's id, or a list of them");
    c.end_token = end.get<std::int64_t>();
  }
  if (reader.text("hidden_act", "silu") != "silu")
    reader.refuse("hidden_act", "only silu is supported");
  if (c.heads % c.kv_heads != 0)
    reader.refuse("num_key_value_heads", "must divide num_attention_heads");
  if (c.head_width % 2 != 0) reader.refuse("head_dim", "must be even");
  read_rope_scaling(file, reader, c);
  return c;
}

decoder_weights::decoder_weights()
    : tensors_(std::make_unique<std::map<std::string, at::Tensor>>()) {}
decoder_weights::~decoder_weights() = default;
decoder_weights::decoder_weights(const decoder_weights& other)
    : tensors_(std::make_unique<std::map<std::string, at::Tensor>>(*other.tensors_)) {}
decoder_weights& decoder_weights::operator=(const decoder_weights& other) {
  *tensors_ = *other.tensors_;
  return *this;
}
decoder_weights::decoder_weights(decoder_weights&&) noexcept = default;
decoder_weights& decoder_weights::operator=(decoder_weights&&) noexcept = default;

const std::map<std::string, at::Tensor>& decoder_weights::all() const { return *tensors_; }
std::map<std::string, at::Tensor>& decoder_weights::all() { return *tensors_; }

decoder_weights decoder_weights::random(const decoder_config& config, std::uint64_t seed) {
  decoder_weights weights;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& [name, shape] : expected_shapes(config)) {
    at::Tensor tensor = at::zeros(shape, at::kFloat);
    if (shape.size() == 2) {
      const bool is_residual =
          name.find("o_proj") != std::string::npos || name.find("down_proj") != std::string::npos;
      const double deviation =
          config.initializer_range /
          (is_residual ? std::sqrt(2.0 * static_cast<double>(config.layers)) : 1.0);
      tensor.normal_(0, deviation, generator);
    } else if (name.find("norm") != std::string::npos) {
      tensor.fill_(1);
    }
    weights.all()[name] = tensor.to(scalar_type(config.dtype));
  }
  return weights;
}

decoder_weights decoder_weights::load(const std::filesystem::path& folder,
                                      const decoder_config& config) {
  decoder_weights weights;
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".safetensors" &&
          entry.path().filename() != "optimizer.safetensors")
        files.push_back(entry.path());
    }
  }
  if (files.empty()) throw policy_error(folder.string() + ": has no *.safetensors");
  for (const auto& path : files) {
    const mapped_file file(path);
    try {
      for (const safetensor& stored : parse_safetensors(file.bytes())) {
        const auto type =
            std::find_if(stored_types.begin(), stored_types.end(),
                         [&](const stored_type& t) { return t.name == stored.dtype; });
        if (type == stored_types.end())
          throw std::runtime_error("tensor " + stored.name + " is of dtype " + stored.dtype);
        at::Tensor tensor = at::empty(stored.shape, type->type);
        std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<char*>(tensor.data_ptr()));
        weights.all()[stored.name] = tensor.to(scalar_type(config.dtype));
      }
    } catch (const std::runtime_error& e) {
      throw policy_error(path.string() + ": " + e.what());
    }
  }
  std::set<std::string> wanted;
  for (const auto& [name, shape] : expected_shapes(config)) {
    wanted.insert(name);
    const auto found = weights.all().find(name);
    if (found == weights.all().end())
      throw policy_error(folder.string() + ": the tensor " + name + " is missing");
    if (found->second.sizes() != at::IntArrayRef(shape))
      throw policy_error(folder.string() + ": the tensor " + name +
                         " has another shape than config.json gives it");
  }
  std::erase_if(weights.all(), [&](const auto& entry) { return !wanted.contains(entry.first); });
  return weights;
}

void decoder_weights::save(const std::filesystem::path& file) const {
  std::vector<safetensor> stored;
  std::vector<at::Tensor> alive;
  for (const auto& [name, given] : all()) {
    at::Tensor tensor = given.detach().to(at::kCPU).contiguous();
    const auto type =
        std::find_if(stored_types.begin(), stored_types.end(),
                     [&](const stored_type& t) { return t.type == tensor.scalar_type(); });
    if (type == stored_types.end())
      throw policy_error(file.string() + ": " + name + " is of a type that cannot be stored");
    stored.push_back({name,
                      std::string(type->name),
                      tensor.sizes().vec(),
                      {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()}});
    alive.push_back(std::move(tensor));
  }
  write_policy_tensors(file, stored);
}

decoder_weights decoder_weights::to(const std::string& device, const std::string& dtype) const {
  decoder_weights moved;
  for (const auto& [name, tensor] : all())
    moved.all()[name] = tensor.to(at::Device(device), scalar_type(dtype));
  return moved;
}

std::int64_t decoder_weights::parameters() const {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : all()) count += tensor.numel();
  return count;
}

struct decoder::state {
  decoder_config config;
  at::Tensor frequencies;  // [head_width / 2], fp32 on the CPU
  double wavelength_scale = 1;
};

decoder::decoder(decoder_config config) : state_(std::make_unique<state>()) {
  state_->config = std::move(config);
  const decoder_config& c = state_->config;
  // Source: Su et al. 2021 (arXiv 2104.09864), with the scaling of Chen et al. 2023 (linear) or of
  // Llama 3.1 (llama3).
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < c.head_width / 2; ++i) {
    double f =
        std::pow(c.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_width));
    if (c.rope_scaling == "linear") f /= c.rope_factor;
    if (c.rope_scaling == "llama3") {
      const double wavelength = 2 * std::numbers::pi / f;
      const double low = c.rope_original_context / c.rope_low_frequency;
      const double high = c.rope_original_context / c.rope_high_frequency;
      if (wavelength > low) {
        f /= c.rope_factor;
      } else if (wavelength > high) {
        const double smooth = (c.rope_original_context / wavelength - c.rope_low_frequency) /
                              (c.rope_high_frequency - c.rope_low_frequency);
        f = (1 - smooth) * f / c.rope_factor + smooth * f;
      }
    }
    frequencies.push_back(f);
  }
  state_->frequencies = at::tensor(frequencies, at::kDouble).to(at::kFloat);
}

decoder::~decoder() = default;
decoder::decoder(decoder&&) noexcept = default;
const decoder_config& decoder::config() const { return state_->config; }

std::pair<at::Tensor, at::Tensor> decoder::rotary(const at::Tensor& positions) const {
  const at::Tensor angles =
      at::outer(positions.to(at::kFloat), state_->frequencies.to(positions.device()));
  const at::Tensor both = at::cat({angles, angles}, -1);
  return {both.cos(), both.sin()};
}

at::Tensor decoder::attend(const at::Tensor& q, at::Tensor k, at::Tensor v,
                           std::span<const std::int64_t> lengths) const {
  const decoder_config& c = state_->config;
  if (c.kv_heads < c.heads) {
    k = k.repeat_interleave(c.heads / c.kv_heads, 1);
    v = v.repeat_interleave(c.heads / c.kv_heads, 1);
  }
  // Adjacent sequences of equal length share one attention call.
  std::vector<at::Tensor> mixed;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < lengths.size();) {
    std::size_t end = i;
    while (end < lengths.size() && lengths[end] == lengths[i]) ++end;
    const std::int64_t batch = static_cast<std::int64_t>(end - i);
    const std::int64_t tokens = batch * lengths[i];
    const auto part = [&](const at::Tensor& t) {
      return t.narrow(0, begin, tokens)
          .view({batch, lengths[i], c.heads, c.head_width})
          .transpose(1, 2);
    };
    mixed.push_back(at::scaled_dot_product_attention(part(q), part(k), part(v), std::nullopt, 0.0,
                                                     /*is_causal=*/true)
                        .transpose(1, 2)
                        .reshape({tokens, c.heads * c.head_width}));
    begin += tokens;
    i = end;
  }
  return mixed.size() == 1 ? mixed.front() : at::cat(mixed);
}

at::Tensor decoder::hidden(const decoder_weights& weights, const at::Tensor& tokens,
                           std::span<const std::int64_t> lengths) const {
  const decoder_config& c = state_->config;
  const auto& w = weights.all();
  const std::int64_t count = tokens.size(0);
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    const auto bias = w.find(name + ".bias");
    return at::linear(x, w.at(name + ".weight"),
                      bias != w.end() ? std::optional<at::Tensor>(bias->second) : std::nullopt);
  };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::rms_norm(x, {x.size(-1)}, w.at(name), c.norm_epsilon);
  };
  at::Tensor x = at::embedding(w.at("model.embed_tokens.weight"), tokens);
  std::vector<std::int64_t> positions;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i) positions.push_back(i);
  }
  const auto [cos_table, sin_table] = rotary(at::tensor(positions, at::kLong).to(tokens.device()));
  const at::Tensor cosine = cos_table.to(x.scalar_type()).unsqueeze(1);
  const at::Tensor sine = sin_table.to(x.scalar_type()).unsqueeze(1);
  const auto rotate = [&](const at::Tensor& t) { return t * cosine + rotate_half(t) * sine; };
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.";
    const at::Tensor h = norm(x, layer + "input_layernorm.weight");
    at::Tensor q = linear(h, attention + "q_proj").view({count, c.heads, c.head_width});
    at::Tensor k = linear(h, attention + "k_proj").view({count, c.kv_heads, c.head_width});
    const at::Tensor v = linear(h, attention + "v_proj").view({count, c.kv_heads, c.head_width});
    if (c.head_norm) {
      q = norm(q, attention + "q_norm.weight");
      k = norm(k, attention + "k_norm.weight");
    }
    x = x + linear(attend(rotate(q), rotate(k), v, lengths), attention + "o_proj");
    const at::Tensor m = norm(x, layer + "post_attention_layernorm.weight");
    x = x + linear(at::silu(linear(m, layer + "mlp.gate_proj")) * linear(m, layer + "mlp.up_proj"),
                   layer + "mlp.down_proj");
  }
  return norm(x, "model.norm.weight");
}

at::Tensor decoder::logits(const decoder_weights& weights, const at::Tensor& tokens) const {
  const auto& w = weights.all();
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(tokens.size(0)), tokens.size(1));
  const at::Tensor all = hidden(weights, tokens.reshape({-1}), lengths)
                             .view({tokens.size(0), tokens.size(1), state_->config.width});
  return at::linear(all,
                    w.at(state_->config.tied_head ? "model.embed_tokens.weight" : "lm_head.weight"))
      .to(at::kFloat);
}

at::Tensor decoder::logits_at(const decoder_weights& weights, const at::Tensor& tokens,
                              std::span<const std::int64_t> lengths,
                              const at::Tensor& positions) const {
  const auto& w = weights.all();
  const at::Tensor rows = hidden(weights, tokens, lengths).index_select(0, positions);
  return at::linear(rows,
                    w.at(state_->config.tied_head ? "model.embed_tokens.weight" : "lm_head.weight"))
      .to(at::kFloat);
}

}  // namespace hone
