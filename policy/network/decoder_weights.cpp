#include "policy/network/decoder_weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "messages/plain_message.hpp"
#include "policy/files.hpp"
#include "policy/network/adapters.hpp"
#include "policy/scalar_type.hpp"
#include "policy/work_progress.hpp"
#include "tasks/safetensors.hpp"

namespace hone {
namespace {

struct stored_type {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array<stored_type, 4> stored_types = {
    {{"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf}, {"F64", at::kDouble}}};

// Returns the files that the index of a model in several files names.
std::vector<std::filesystem::path> indexed_files(const std::filesystem::path& index) {
  std::set<std::filesystem::path> files;
  try {
    const auto listed = nlohmann::json::parse(read_policy_json(index));
    for (const auto& [name, file] : listed.at("weight_map").items()) {
      const std::filesystem::path one = file.get<std::string>();
      if (one != one.filename())
        throw policy_error(index.string() + ": names " + one.string() +
                           ", which is no file's name");
      files.insert(index.parent_path() / one);
    }
  } catch (const nlohmann::json::exception& e) {
    throw policy_error(index.string() +
                       ": cannot be read as an index of weights: " + plain_message(e));
  }
  if (files.empty()) throw policy_error(index.string() + ": weight_map: names no file");
  for (const auto& file : files) {
    if (!std::filesystem::exists(file))
      throw policy_error(index.string() + ": names " + file.filename().string() +
                         ", which is not in the folder");
  }
  return {files.begin(), files.end()};
}

// Returns the files that hold a folder's weights, in the order of preference of the package
// `transformers`.
std::vector<std::filesystem::path> weight_files(const std::filesystem::path& folder) {
  const std::filesystem::path whole = folder / "model.safetensors";
  if (std::filesystem::exists(whole)) return {whole};
  const std::filesystem::path index = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(index)) return indexed_files(index);
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".safetensors" && name != "optimizer.safetensors" &&
        !name.starts_with("adapter"))
      files.push_back(entry.path());
  }
  return files;
}

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

}  // namespace

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

decoder_weights decoder_weights::random(const decoder_config& config, std::uint64_t seed,
                                        const std::string& device) {
  decoder_weights weights;
  const c10::Device on(device);
  at::Generator generator = on.is_cpu() ? at::make_generator<at::CPUGeneratorImpl>(seed)
                                        : at::globalContext().defaultGenerator(on).clone();
  generator.set_current_seed(seed);
  for (const auto& [name, shape] : expected_shapes(config)) {
    at::Tensor tensor = at::zeros(shape, at::TensorOptions(at::kFloat).device(on));
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

namespace {

// Throws policy_error if an adapter is none of a matrix of the weights.
void refuse_unknown_matrices(const std::filesystem::path& folder, const saved_adapters& saved,
                             const decoder_weights& weights) {
  for (const auto& [name, tensor] : saved.adapters.all()) {
    const std::size_t at = name.find(".lora_");
    const std::string matrix = name.substr(0, at) + ".weight";
    const auto found = weights.all().find(matrix);
    const bool is_adapter = name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight");
    if (is_adapter && found != weights.all().end() && found->second.dim() == 2 &&
        matrix.find("_proj.") != std::string::npos)
      continue;
    throw policy_error(folder.string() + ": the adapter " + name +
                       " belongs to no projection of the layers in " + saved.base.string());
  }
}

// Throws policy_error if the config.json next to adapters describes another model than their
// base's, which peft uses.
void refuse_other_config(const std::filesystem::path& folder, const std::filesystem::path& base) {
  if (!std::filesystem::exists(folder / "config.json")) return;
  decoder_config ours = decoder_config::load(folder / "config.json");
  const decoder_config theirs = decoder_config::load(base / "config.json");
  ours.dtype = theirs.dtype;
  ours.end_tokens = theirs.end_tokens;
  if (ours != theirs)
    throw policy_error((folder / "config.json").string() +
                       ": describes another model than that of the base, " +
                       (base / "config.json").string());
}

// Returns the weights that a folder of adapters belongs to, merged with them.
decoder_weights load_merged(const std::filesystem::path& folder, const decoder_config& config) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    if (std::filesystem::exists(folder / name))
      throw policy_error(folder.string() + ": has both " + name +
                         " and adapter_config.json; move the adapters to another folder, or remove "
                         "one of the two");
  }
  const saved_adapters saved = load_adapters(folder);
  refuse_other_config(folder, saved.base);
  decoder_weights weights = decoder_weights::load(saved.base, config);
  refuse_unknown_matrices(folder, saved, weights);
  for (const auto& [name, tensor] : saved.adapters.all()) weights.all()[name] = tensor;
  try {
    return merge_adapters(weights, saved.options.scale());
  } catch (const c10::Error&) {
    throw policy_error(folder.string() +
                       ": the adapters do not have the shapes of the weights in " +
                       saved.base.string());
  } catch (const std::out_of_range&) {
    throw policy_error(folder.string() + ": an adapter lacks one of its two matrices");
  }
}

// Throws policy_error if a folder has a tensor that the model of its config.json does not use: its
// own library would use it, or say so. Copies of the embedding as the head, and frequencies of
// positions, which follow from config.json, may be there.
void refuse_unused(const std::filesystem::path& folder, const decoder_config& config,
                   const decoder_weights& weights, const std::set<std::string>& wanted) {
  std::vector<std::string> unused;
  for (const auto& [name, tensor] : weights.all()) {
    if (wanted.contains(name) || name.ends_with("rotary_emb.inv_freq")) continue;
    if (name == "lm_head.weight" && config.tied_head) {
      const at::Tensor& embedding = weights.all().at("model.embed_tokens.weight");
      if (tensor.sizes() == embedding.sizes() && at::equal(tensor, embedding)) continue;
      throw policy_error(folder.string() +
                         ": the tensor lm_head.weight differs from model.embed_tokens.weight, "
                         "although config.json says tie_word_embeddings = true; with false, the "
                         "policy uses it");
    }
    unused.push_back(name);
  }
  if (unused.empty()) return;
  throw policy_error(
      folder.string() + ": the tensor " + unused.front() +
      (unused.size() > 1 ? " and " + std::to_string(unused.size() - 1) + " others have" : " has") +
      " no place in the model that config.json describes, so the policy would not be "
      "the one that was saved");
}

// Calls `use` with each tensor of a folder's files of weights. Throws policy_error, also with the
// reason of an exception of `use`.
void read_tensors(const std::filesystem::path& folder,
                  const std::function<void(const safetensor&)>& use) {
  const std::vector<std::filesystem::path> files = weight_files(folder);
  if (files.empty())
    throw policy_error(folder.string() +
                       ": has no *.safetensors, and other files of weights are not read "
                       "(policy.random_weights = true starts from random weights)");
  for (const auto& path : files) {
    const mapped_file file(path);
    try {
      for (const safetensor& stored : parse_safetensors(file.bytes())) use(stored);
    } catch (const std::runtime_error& e) {
      throw policy_error(path.string() + ": " + e.what());
    }
  }
}

}  // namespace

void decoder_weights::require_files(const std::filesystem::path& folder) {
  if (has_adapters(folder)) return;  // their base is found when they are loaded
  read_tensors(folder, [](const safetensor&) {});
}

decoder_weights decoder_weights::load(const std::filesystem::path& folder,
                                      const decoder_config& config) {
  if (has_adapters(folder)) return load_merged(folder, config);
  decoder_weights weights;
  const bool is_indexed = std::filesystem::exists(folder / "model.safetensors.index.json");
  read_tensors(folder, [&](const safetensor& stored) {
    const auto type = std::find_if(stored_types.begin(), stored_types.end(),
                                   [&](const stored_type& t) { return t.name == stored.dtype; });
    if (type == stored_types.end())
      throw std::runtime_error("tensor " + stored.name + " is of dtype " + stored.dtype);
    at::Tensor tensor = at::empty(stored.shape, type->type);
    std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<char*>(tensor.data_ptr()));
    if (!is_indexed && weights.all().contains(stored.name))
      throw std::runtime_error("the tensor " + stored.name +
                               " is in another *.safetensors of the folder as well, and no "
                               "model.safetensors.index.json says which one counts");
    weights.all()[stored.name] = tensor.to(scalar_type(config.dtype));
    note_progress();
  });
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
  refuse_unused(folder, config, weights, wanted);
  std::erase_if(weights.all(), [&](const auto& entry) { return !wanted.contains(entry.first); });
  return weights;
}

decoder_weights decoder_weights::load_finite(const std::filesystem::path& folder,
                                             const decoder_config& config) {
  decoder_weights weights = load(folder, config);
  if (const auto damaged = weights.find_not_finite())
    throw policy_error(folder.string() + ": the tensor " + *damaged +
                       " holds values that are not finite");
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

decoder_weights decoder_weights::copied_to(const std::string& device,
                                           const std::string& dtype) const {
  decoder_weights copies;
  for (const auto& [name, tensor] : all())
    copies.all()[name] = tensor.to(at::Device(device), scalar_type(dtype), /*non_blocking=*/false,
                                   /*copy=*/true);
  return copies;
}

decoder_weights decoder_weights::on_host() const {
  decoder_weights copy;
  for (const auto& [name, tensor] : all()) {
    at::Tensor there = at::empty(
        tensor.sizes(), at::TensorOptions(tensor.scalar_type()).pinned_memory(!tensor.is_cpu()));
    there.copy_(tensor);
    copy.all()[name] = there;
  }
  return copy;
}

std::optional<std::string> decoder_weights::find_not_finite() const {
  for (const auto& [name, tensor] : all()) {
    if (!at::isfinite(tensor).all().item<bool>()) return name;
  }
  return std::nullopt;
}

std::map<std::string, std::vector<std::int64_t>> decoder_weights::shapes() const {
  std::map<std::string, std::vector<std::int64_t>> by_name;
  for (const auto& [name, tensor] : all()) by_name[name] = tensor.sizes().vec();
  return by_name;
}

std::int64_t decoder_weights::parameters() const {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : all()) count += tensor.numel();
  return count;
}

}  // namespace hone
