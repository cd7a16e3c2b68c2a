#include "policy/decoder_config.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "messages/plain_message.hpp"
#include "messages/value_names.hpp"
#include "policy/files.hpp"
#include "policy/scalar_type.hpp"

namespace hone {
namespace {

using nlohmann::json;

// The defaults of the config classes of transformers 5.24 (LlamaConfig, MistralConfig, Qwen2Config,
// Qwen3Config) for keys that are absent.
struct type_defaults {
  std::string_view type;
  std::int64_t vocabulary;
  std::int64_t feed_forward;
  std::int64_t kv_heads;    // 0: num_attention_heads
  std::int64_t head_width;  // 0: hidden_size over num_attention_heads
  std::int64_t context;
  std::int64_t window;     // sliding_window
  bool has_window_switch;  // use_sliding_window, false if absent
  bool has_bias_key;       // attention_bias, for the projections q, k, v and o
  bool has_bias;           // of q, k and v, whatever a key says
  bool has_mlp_bias_key;   // mlp_bias
  bool has_head_norm;
  std::int64_t end_token;  // eos_token_id; -1: none
};
constexpr std::array<type_defaults, 4> known_types = {{
    {"llama", 32000, 11008, 0, 0, 2048, 0, false, true, false, true, false, 2},
    {"mistral", 32000, 14336, 8, 0, 131072, 4096, false, false, false, false, false, 2},
    {"qwen2", 151936, 22016, 32, 0, 32768, 4096, true, false, true, false, false, -1},
    {"qwen3", 151936, 22016, 32, 128, 32768, 4096, true, true, false, false, true, -1},
}};
constexpr std::int64_t default_width = 4096;
constexpr std::int64_t default_layers = 32;
constexpr std::int64_t default_heads = 32;
constexpr std::int64_t default_max_window_layers = 28;
constexpr std::int64_t max_layers = 10000;

// Reads config values. An absent key has the given default. Errors are policy_error with a message
// that names the file, the key and what it has.
class config_reader {
 public:
  config_reader(const json& values, std::string file) : values_(&values), file_(std::move(file)) {}
  bool has(const char* key) const { return values_->contains(key); }
  bool is_null(const char* key) const { return has(key) && (*values_)[key].is_null(); }
  std::int64_t size(const char* key, std::int64_t otherwise) const {
    if (!has(key)) return otherwise;
    const json& given = (*values_)[key];
    if (!given.is_number_integer() || given.get<std::int64_t>() <= 0)
      refuse(key, "has " + given.dump() + ", expected a whole number above 0");
    return given.get<std::int64_t>();
  }
  // The same for a key that may be null, which means `if_null`.
  std::int64_t size_or_null(const char* key, std::int64_t otherwise, std::int64_t if_null) const {
    return is_null(key) ? if_null : size(key, otherwise);
  }
  double number(const char* key, double otherwise) const {
    return value<double>(key, otherwise, "a number", &json::is_number);
  }
  double positive(const char* key, double otherwise) const {
    const double given = number(key, otherwise);
    if (!(given > 0)) refuse(key, "has " + (*values_)[key].dump() + ", expected a number above 0");
    return given;
  }
  double required_number(const char* key) const {
    if (!has(key)) refuse(key, "is missing, and has no default");
    return positive(key, 1);
  }
  bool flag(const char* key, bool otherwise) const {
    return value<bool>(key, otherwise, "true or false", &json::is_boolean);
  }
  std::string text(const char* key, const std::string& otherwise) const {
    return value<std::string>(key, otherwise, "a string", &json::is_string);
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& problem) const {
    throw policy_error(file_ + ": " + key + ": " + problem);
  }

 private:
  template <class T>
  T value(const char* key, T otherwise, const char* expected,
          bool (json::*is_right)() const noexcept) const {
    if (!has(key)) return otherwise;
    const json& given = (*values_)[key];
    if (!(given.*is_right)()) refuse(key, "has " + given.dump() + ", expected " + expected);
    return given.get<T>();
  }
  const json* values_;
  std::string file_;
};

json read_object(const std::filesystem::path& path) {
  const std::string text = read_policy_json(path);
  json file;
  try {
    file = json::parse(text);
  } catch (const json::exception& e) {
    throw policy_error(path.string() + ": is no JSON: " + plain_message(e));
  }
  if (!file.is_object()) throw policy_error(path.string() + ": is no JSON object");
  return file;
}

// Returns nullopt without the key.
std::optional<std::vector<std::int64_t>> read_end_tokens(const json& file,
                                                         const config_reader& reader) {
  constexpr const char* key = "eos_token_id";
  if (!file.contains(key)) return std::nullopt;
  std::vector<std::int64_t> ids;
  if (file[key].is_null()) return ids;
  const json listed = file[key].is_array() ? file[key] : json::array({file[key]});
  for (const json& id : listed) {
    if (!id.is_number_integer())
      reader.refuse(key, "has " + file[key].dump() + ", expected a token's id, or a list of them");
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

void read_rope(const json& file, const config_reader& reader, const std::string& path,
               decoder_config& c) {
  c.rope_theta = reader.positive("rope_theta", 10000);
  const auto is_given = [&](const char* name) {
    return file.contains(name) && !file[name].is_null() && !file[name].empty();
  };
  if (is_given("rope_scaling") && is_given("rope_parameters") &&
      file["rope_scaling"] != file["rope_parameters"])
    reader.refuse("rope_scaling", "differs from rope_parameters, which is the newer name for it");
  if (!reader.is_null("partial_rotary_factor") && reader.number("partial_rotary_factor", 1) != 1)
    reader.refuse("partial_rotary_factor", "is supported only as 1");
  // Newer versions of the transformers package write all rotary parameters into one object.
  const char* key = is_given("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!is_given(key)) return;
  const json& scaling = file[key];
  if (!scaling.is_object()) reader.refuse(key, "has " + scaling.dump() + ", expected an object");
  for (const auto& [name, value] : scaling.items()) {
    if (value.is_object())
      reader.refuse(key, "has parameters for each type of layer ('" + name +
                             "'), expected one object for all layers");
  }
  const config_reader inner(scaling, path + ": " + key);
  c.rope_theta = inner.positive("rope_theta", c.rope_theta);
  if (inner.number("partial_rotary_factor", 1) != 1)
    inner.refuse("partial_rotary_factor", "is supported only as 1");
  const std::string type = inner.text("rope_type", inner.text("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "llama3")
    reader.refuse(key, "type '" + type + "' is not supported, expected linear or llama3");
  c.rope_scaling = type;
  c.rope_factor = inner.required_number("factor");
  if (type == "linear") return;
  c.rope_low_frequency = inner.required_number("low_freq_factor");
  c.rope_high_frequency = inner.required_number("high_freq_factor");
  c.rope_original_context = inner.required_number("original_max_position_embeddings");
}

// Reads the kind of each layer. Returns true if some layers have a window.
bool read_layer_kinds(const json& kinds, const config_reader& reader, const decoder_config& c) {
  constexpr const char* key = "layer_types";
  if (!kinds.is_array() || kinds.size() != static_cast<std::size_t>(c.layers))
    reader.refuse(key, "is no list of num_hidden_layers = " + std::to_string(c.layers) + " kinds");
  for (const json& kind : kinds) {
    if (kind != "full_attention" && kind != "sliding_attention")
      reader.refuse(key, "has " + kind.dump() + ", expected full_attention or sliding_attention");
  }
  return std::find(kinds.begin(), kinds.end(), "sliding_attention") != kinds.end();
}

// Refuses a model some of whose layers look back no further than a window that is shorter than the
// context.
void refuse_windows(const json& file, const config_reader& reader, const type_defaults& type,
                    const decoder_config& c) {
  if (type.window == 0) return;
  const bool has_kinds =
      type.has_window_switch && file.contains("layer_types") && !file["layer_types"].is_null();
  bool names_windows = false;
  if (has_kinds) names_windows = read_layer_kinds(file["layer_types"], reader, c);
  if (type.has_window_switch && !reader.flag("use_sliding_window", false)) {
    if (names_windows)
      reader.refuse("layer_types", "has sliding_attention, and use_sliding_window is not true");
    return;
  }
  constexpr const char* key = "sliding_window";
  const std::int64_t window = reader.size_or_null(key, type.window, c.context);
  if (window >= c.context) return;
  // The layers of types without a switch have a window in common, whatever layer_types says.
  bool has_window = names_windows || !type.has_window_switch;
  if (type.has_window_switch && !has_kinds)
    has_window = reader.size("max_window_layers", default_max_window_layers) < c.layers;
  if (!has_window) return;
  reader.refuse(key, (file.contains(key) ? "is " : "is absent, which means ") +
                         std::to_string(window) + " for the model type " + std::string(type.type) +
                         "; windows shorter than the context of " + std::to_string(c.context) +
                         " are not supported (null: none)");
}

std::string read_dtype(const config_reader& reader) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (!reader.has(key) || reader.is_null(key)) continue;
    const std::string given = reader.text(key, "");
    try {
      scalar_type(given);
      return given;
    } catch (const policy_error&) {
      reader.refuse(key, "has '" + given + "', expected float32, bfloat16 or float16");
    }
  }
  return "float32";
}

}  // namespace

decoder_config decoder_config::load(const std::filesystem::path& path) {
  const json file = read_object(path);
  const config_reader reader(file, path.string());
  const std::string name = reader.text("model_type", "");
  const auto* const type = std::find_if(known_types.begin(), known_types.end(),
                                        [&](const type_defaults& t) { return t.type == name; });
  if (type == known_types.end())
    reader.refuse("model_type", (name.empty() ? "is missing" : "'" + name + "' is not supported") +
                                    std::string(", expected llama, mistral, qwen2 or qwen3"));
  if (!reader.is_null("is_causal") && !reader.flag("is_causal", true))
    reader.refuse("is_causal", "is false, and only causal models are supported");
  if (file.contains("quantization_config") && !file["quantization_config"].is_null())
    reader.refuse("quantization_config", "quantized weights are not supported");
  decoder_config c;
  c.vocabulary = reader.size("vocab_size", type->vocabulary);
  c.width = reader.size("hidden_size", default_width);
  c.layers = reader.size("num_hidden_layers", default_layers);
  if (c.layers > max_layers)
    reader.refuse("num_hidden_layers", "is " + std::to_string(c.layers) + ", expected at most " +
                                           std::to_string(max_layers));
  c.heads = reader.size("num_attention_heads", default_heads);
  c.kv_heads = reader.size_or_null("num_key_value_heads",
                                   type->kv_heads > 0 ? type->kv_heads : c.heads, c.heads);
  // Not all classes have this key, but all models use it.
  if (type->head_width > 0 && reader.is_null("head_dim"))
    reader.refuse("head_dim", "is null, expected a whole number above 0");
  c.head_width = reader.size_or_null(
      "head_dim", type->head_width > 0 ? type->head_width : c.width / c.heads, c.width / c.heads);
  c.feed_forward = reader.size("intermediate_size", type->feed_forward);
  c.context = reader.size("max_position_embeddings", type->context);
  c.norm_epsilon = reader.positive("rms_norm_eps", 1e-6);
  c.tied_head = reader.flag("tie_word_embeddings", false);
  const bool given_bias = type->has_bias_key && reader.flag("attention_bias", false);
  c.attention_bias = type->has_bias || given_bias;
  c.output_bias = given_bias;
  c.mlp_bias = type->has_mlp_bias_key && reader.flag("mlp_bias", false);
  c.head_norm = type->has_head_norm;
  c.initializer_range = reader.number("initializer_range", 0.02);
  c.dtype = read_dtype(reader);
  c.end_tokens = read_end_tokens(file, reader)
                     .value_or(type->end_token < 0 ? std::vector<std::int64_t>()
                                                   : std::vector<std::int64_t>{type->end_token});
  const std::filesystem::path of_generation = path.parent_path() / "generation_config.json";
  if (std::filesystem::exists(of_generation)) {
    const json other = read_object(of_generation);
    const auto ends = read_end_tokens(other, config_reader(other, of_generation.string()));
    if (ends && !ends->empty()) c.end_tokens = *ends;
  }
  refuse_windows(file, reader, *type, c);
  if (reader.text("hidden_act", "silu") != "silu")
    reader.refuse("hidden_act", "only silu is supported");
  if (c.heads % c.kv_heads != 0)
    reader.refuse("num_key_value_heads", "must divide num_attention_heads");
  if (c.head_width % 2 != 0) reader.refuse("head_dim", "must be even");
  read_rope(file, reader, path.string(), c);
  return c;
}

namespace {
constexpr std::array<std::string_view, 4> compute_dtypes = {"auto", "float32", "bfloat16",
                                                            "float16"};
}

std::string_view name_of(compute_dtype dtype) {
  return compute_dtypes[static_cast<std::size_t>(dtype)];
}

std::optional<compute_dtype> compute_dtype_named(std::string_view name) {
  return value_named<compute_dtype>(compute_dtypes, name);
}

decoder_config load_config_for(const std::string& device, const std::filesystem::path& folder,
                               compute_dtype dtype) {
  decoder_config c = decoder_config::load(folder / "config.json");
  if (dtype != compute_dtype::automatic) {
    c.dtype = name_of(dtype);
  } else if (device == "cpu") {
    c.dtype = "float32";
  }
  return c;
}

}  // namespace hone
