#include "policy/network/adapters.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "messages/plain_message.hpp"
#include "policy/files.hpp"
#include "process/replace_file.hpp"
#include "tasks/safetensors.hpp"

namespace hone {
namespace {

constexpr const char* config_file = "adapter_config.json";
constexpr const char* weights_file = "adapter_model.safetensors";
constexpr std::string_view peft_prefix = "base_model.model.";
constexpr const char* base_key = "base_model_name_or_path";
constexpr std::string_view suffix = ".weight";

void write_config(const std::filesystem::path& folder, const nlohmann::ordered_json& config) {
  // Replaces the file instead of overwriting it: others may be reading it.
  try {
    replace_file(folder / config_file, config.dump(1) + "\n", 0644);
  } catch (const std::exception& e) {
    throw policy_error(e.what());
  }
}

// Calls `use` with the configuration of adapters in a folder. Throws policy_error.
template <class Use>
void with_config(const std::filesystem::path& folder, const Use& use) {
  try {
    use(nlohmann::ordered_json::parse(read_policy_json(folder / config_file)));
  } catch (const nlohmann::json::exception& e) {
    throw policy_error((folder / config_file).string() +
                       ": cannot be read as a configuration of LoRA: " + plain_message(e));
  }
}

// Returns the name of a matrix's adapter: `which` is "lora_A" or "lora_B".
std::string adapter_name(const std::string& matrix, const char* which) {
  return matrix.substr(0, matrix.size() - suffix.size()) + "." + which + ".weight";
}

bool belongs_to(const std::string& matrix, const std::vector<std::string>& modules) {
  return std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
    return matrix.ends_with("." + module + std::string(suffix));
  });
}

}  // namespace

decoder_weights make_adapters(const decoder_weights& weights, const adapter_options& o,
                              std::uint64_t seed) {
  decoder_weights adapters;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& [name, matrix] : weights.all()) {
    if (!belongs_to(name, o.modules)) continue;
    const double most = 1 / std::sqrt(static_cast<double>(matrix.size(1)));
    const at::Tensor a = at::empty({o.rank, matrix.size(1)}, at::kFloat);
    a.uniform_(-most, most, generator);
    adapters.all()[adapter_name(name, "lora_A")] = a.to(matrix.device());
    adapters.all()[adapter_name(name, "lora_B")] =
        at::zeros({matrix.size(0), o.rank}, matrix.options().dtype(at::kFloat));
  }
  if (adapters.all().empty())
    throw policy_error("policy.adapter_modules names no projection of the policy");
  return adapters;
}

at::Tensor adapted_matrix(const decoder_weights& weights, const std::string& name, double scale) {
  const at::Tensor& matrix = weights.all().at(name);
  const auto a = weights.all().find(adapter_name(name, "lora_A"));
  if (a == weights.all().end()) return matrix;
  const at::Tensor& b = weights.all().at(adapter_name(name, "lora_B"));
  return matrix + (at::mm(b, a->second) * scale).to(matrix.scalar_type());
}

decoder_weights merge_adapters(const decoder_weights& weights, double scale) {
  decoder_weights merged;
  for (const auto& [name, tensor] : weights.all()) {
    if (name.find(".lora_") == std::string::npos)
      merged.all()[name] = tensor.dim() == 2 ? adapted_matrix(weights, name, scale) : tensor;
  }
  return merged;
}

void save_adapters(const std::filesystem::path& folder, const decoder_weights& adapters,
                   const adapter_options& o, const std::filesystem::path& base) {
  decoder_weights named;
  for (const auto& [name, tensor] : adapters.all())
    named.all()[std::string(peft_prefix) + name] = tensor;
  named.save(folder / weights_file);
  write_config(folder, {{"peft_type", "LORA"},
                        {"task_type", "CAUSAL_LM"},
                        {base_key, std::filesystem::absolute(base).lexically_normal().string()},
                        {"r", o.rank},
                        {"lora_alpha", o.alpha},
                        {"target_modules", o.modules},
                        {"lora_dropout", 0.0},
                        {"bias", "none"},
                        {"fan_in_fan_out", false},
                        {"inference_mode", true}});
}

void set_adapter_base(const std::filesystem::path& folder, const std::filesystem::path& base) {
  with_config(folder, [&](nlohmann::ordered_json config) {
    config[base_key] = std::filesystem::absolute(base).lexically_normal().string();
    write_config(folder, config);
  });
}

bool has_adapters(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / config_file);
}

namespace {

// Keys of peft's LoraConfig that do not change what trained adapters compute, or that are read
// below.
constexpr std::array<std::string_view, 17> free_keys = {
    "peft_type",           "task_type",          "auto_mapping",
    "peft_version",        "revision",           "r",
    "lora_alpha",          "lora_dropout",       "target_modules",
    "inference_mode",      "megatron_core",      "runtime_config",
    "ensure_weight_tying", "qalora_group_size",  base_key,
    "init_lora_weights",   "layers_to_transform"};
// Initial values of adapters that leave the base's weights as they are. Others change these.
constexpr std::array<std::string_view, 3> known_initial_values = {"gaussian", "eva", "orthogonal"};

// The configuration of a folder of adapters, with messages that name its keys.
class adapter_config {
 public:
  adapter_config(const std::filesystem::path& folder, const nlohmann::ordered_json& values)
      : file_((folder / config_file).string()), values_(values) {
    if (!values.is_object()) throw policy_error(file_ + ": is no JSON object");
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& problem) const {
    throw policy_error(file_ + ": " + key + ": " + problem);
  }
  std::string shown(const char* key) const {
    return values_.contains(key) ? "has " + values_[key].dump() : "is missing";
  }

  // Refuses every key that would change what the adapters compute.
  void refuse_unknown() const {
    if (values_.value("peft_type", nlohmann::ordered_json()) != "LORA")
      refuse("peft_type", shown("peft_type") + ", and only LORA is supported");
    for (const auto& [key, value] : values_.items()) {
      if (std::find(free_keys.begin(), free_keys.end(), key) != free_keys.end()) continue;
      const bool is_neutral = value.is_null() || value == false || value == "none" ||
                              (value.is_structured() && value.empty()) ||
                              (key == "layers_pattern" && (value == "layers" || value == ""));
      if (!is_neutral) refuse(key, "has " + value.dump() + ", and is not supported");
    }
    const auto initial = values_.value("init_lora_weights", nlohmann::ordered_json(true));
    if (!initial.is_boolean() && !initial.is_null() &&
        std::find(known_initial_values.begin(), known_initial_values.end(), initial) ==
            known_initial_values.end())
      refuse("init_lora_weights",
             "has " + initial.dump() + ", for which peft changes the weights of the base");
  }

  std::int64_t rank() const {
    const auto given = values_.value("r", nlohmann::ordered_json());
    if (!given.is_number_integer() || given < 1)
      refuse("r", shown("r") + ", expected a whole number above 0");
    return given.get<std::int64_t>();
  }
  double alpha() const {
    const auto given = values_.value("lora_alpha", nlohmann::ordered_json());
    if (!given.is_number()) refuse("lora_alpha", shown("lora_alpha") + ", expected a number");
    return given.get<double>();
  }
  // A text is a pattern, or "all-linear"; the tensors say which modules it means.
  std::vector<std::string> modules() const {
    const auto given = values_.value("target_modules", nlohmann::ordered_json());
    if (given.is_string()) return {};
    const bool is_list =
        given.is_array() && !given.empty() &&
        std::all_of(given.begin(), given.end(), [](const auto& one) { return one.is_string(); });
    if (!is_list) refuse("target_modules", shown("target_modules") + ", expected a list of names");
    return given.get<std::vector<std::string>>();
  }
  // Refuses a tensor that peft would not load, of this module path: "model.layers.0.mlp.up_proj".
  void require_target(const std::string& module) const {
    const std::vector<std::string> named = modules();
    if (!named.empty() && std::none_of(named.begin(), named.end(), [&](const std::string& name) {
          return module == name || module.ends_with("." + name);
        }))
      refuse("target_modules", "does not name " + module + ", of which the file has an adapter");
    const auto layers = values_.value("layers_to_transform", nlohmann::ordered_json());
    if (layers.is_null()) return;
    const auto list = layers.is_array() ? layers : nlohmann::ordered_json::array({layers});
    const bool is_named = std::any_of(list.begin(), list.end(), [&](const auto& layer) {
      return module.find(".layers." + layer.dump() + ".") != std::string::npos;
    });
    if (!is_named)
      refuse("layers_to_transform",
             "does not name the layer of " + module + ", of which the file has an adapter");
  }
  std::string base() const {
    const auto given = values_.value(base_key, nlohmann::ordered_json());
    if (!given.is_string() || given == "")
      refuse(base_key, shown(base_key) + ", expected the folder of the model");
    return given.get<std::string>();
  }

 private:
  std::string file_;
  const nlohmann::ordered_json& values_;
};

// Adds the module of an adapter, such as "q_proj", to those that are listed.
void note_module(const std::string& adapter, std::vector<std::string>& modules) {
  const std::size_t end = adapter.find(".lora_");
  const std::size_t begin = adapter.rfind('.', end == std::string::npos ? end : end - 1);
  if (end == std::string::npos || begin == std::string::npos) return;
  const std::string module = adapter.substr(begin + 1, end - begin - 1);
  if (std::find(modules.begin(), modules.end(), module) == modules.end()) modules.push_back(module);
}

// Reads the tensors of a folder of adapters.
void read_adapters(const std::filesystem::path& folder, const adapter_config& config,
                   saved_adapters& loaded) {
  const std::string bytes = read_policy_file(folder / weights_file);
  try {
    for (const safetensor& stored : parse_safetensors(bytes)) {
      if (!stored.name.starts_with(peft_prefix))
        throw std::runtime_error("tensor " + stored.name + " is no adapter of a language model");
      const auto type = stored.dtype == "F32"    ? at::kFloat
                        : stored.dtype == "BF16" ? at::kBFloat16
                        : stored.dtype == "F16"  ? at::kHalf
                                                 : at::ScalarType::Undefined;
      if (type == at::ScalarType::Undefined)
        throw std::runtime_error("tensor " + stored.name + " is of dtype " + stored.dtype +
                                 ", expected F32, BF16 or F16");
      const at::Tensor tensor = at::empty(stored.shape, type);
      std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<char*>(tensor.data_ptr()));
      const std::string name = stored.name.substr(peft_prefix.size());
      const std::size_t end = name.find(".lora_");
      if (end != std::string::npos) config.require_target(name.substr(0, end));
      const std::int64_t rank = name.ends_with(".lora_A.weight") && tensor.dim() == 2
                                    ? tensor.size(0)
                                    : loaded.options.rank;
      if (rank != loaded.options.rank)
        config.refuse("r", "is " + std::to_string(loaded.options.rank) + ", and the tensor " +
                               stored.name + " is of rank " + std::to_string(rank));
      loaded.adapters.all()[name] = tensor.to(at::kFloat);
      note_module(name, loaded.options.modules);
    }
  } catch (const policy_error&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw policy_error((folder / weights_file).string() + ": " + e.what());
  }
  if (loaded.adapters.all().empty())
    throw policy_error((folder / weights_file).string() + ": has no tensors");
}

}  // namespace

saved_adapters load_adapters(const std::filesystem::path& folder) {
  saved_adapters loaded;
  with_config(folder, [&](const nlohmann::ordered_json& config) {
    const adapter_config given(folder, config);
    given.refuse_unknown();
    loaded.options.rank = given.rank();
    loaded.options.alpha = given.alpha();
    loaded.options.modules = given.modules();
    loaded.base = folder / given.base();
    if (!std::filesystem::is_directory(loaded.base))
      given.refuse(base_key, "has '" + given.base() +
                                 "', expected the folder of the model that the adapters belong to, "
                                 "on this machine");
    if (has_adapters(loaded.base))
      given.refuse(base_key, "has '" + given.base() +
                                 "', which is a folder of adapters itself, expected the folder of "
                                 "the model that they belong to");
    read_adapters(folder, given, loaded);
  });
  return loaded;
}

}  // namespace hone
