#include "policy/decoder_config.hpp"

#include <nlohmann/json.hpp>

#include "policy/files.hpp"
#include "policy/scalar_type.hpp"

namespace hone {
namespace {

using nlohmann::json;

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

json read_object(const std::filesystem::path& path) {
  const std::string text = read_policy_file(path);
  json file;
  try {
    file = json::parse(text);
  } catch (const json::exception& e) {
    throw policy_error(path.string() + ": is no JSON: " + e.what());
  }
  if (!file.is_object()) throw policy_error(path.string() + ": is no JSON object");
  return file;
}

std::vector<std::int64_t> read_end_tokens(const json& file, const config_reader& reader) {
  constexpr const char* key = "eos_token_id";
  std::vector<std::int64_t> ids;
  if (!file.contains(key) || file[key].is_null()) return ids;
  const json listed = file[key].is_array() ? file[key] : json::array({file[key]});
  for (const json& id : listed) {
    if (!id.is_number_integer()) reader.refuse(key, "must be a token's id, or a list of them");
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

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

}  // namespace

decoder_config decoder_config::load(const std::filesystem::path& path) {
  const json file = read_object(path);
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
  c.output_bias = (type == "llama" || type == "qwen3") && c.attention_bias;
  c.mlp_bias = reader.flag("mlp_bias", false);
  c.head_norm = type == "qwen3";
  c.initializer_range = reader.number("initializer_range", 0.02);
  c.dtype = reader.text("dtype", reader.text("torch_dtype", "float32"));
  scalar_type(c.dtype);
  c.end_tokens = read_end_tokens(file, reader);
  const std::filesystem::path of_generation = path.parent_path() / "generation_config.json";
  if (std::filesystem::exists(of_generation)) {
    const json other = read_object(of_generation);
    const auto ends = read_end_tokens(other, config_reader(other, of_generation.string()));
    if (!ends.empty()) c.end_tokens = ends;
  }
  if (reader.flag("use_sliding_window", true) &&
      reader.size("sliding_window", c.context) < c.context)
    reader.refuse("sliding_window", "is not supported unless it is as long as the context");
  if (reader.text("hidden_act", "silu") != "silu")
    reader.refuse("hidden_act", "only silu is supported");
  if (c.heads % c.kv_heads != 0)
    reader.refuse("num_key_value_heads", "must divide num_attention_heads");
  if (c.head_width % 2 != 0) reader.refuse("head_dim", "must be even");
  read_rope_scaling(file, reader, c);
  return c;
}

}  // namespace hone
