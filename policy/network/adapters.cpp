#include "policy/network/adapters.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
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
    use(nlohmann::ordered_json::parse(read_policy_file(folder / config_file)));
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

// Throws policy_error if a package of `peft` has what Hone does not compute.
void refuse_unknown_adapters(const std::filesystem::path& folder,
                             const nlohmann::ordered_json& config) {
  for (const char* key : {"use_rslora", "use_dora", "alpha_pattern", "rank_pattern",
                          "modules_to_save", "bias", "lora_bias", "fan_in_fan_out"}) {
    const auto found = config.find(key);
    const bool is_set = found != config.end() && !found->is_null() && *found != false &&
                        *found != "none" && !(found->is_structured() && found->empty());
    if (is_set)
      throw policy_error((folder / config_file).string() + ": " + key + ": is not supported");
  }
}

// Adds the module of an adapter, such as "q_proj", to those that are listed.
void note_module(const std::string& adapter, std::vector<std::string>& modules) {
  const std::size_t end = adapter.find(".lora_");
  const std::size_t begin = adapter.rfind('.', end == std::string::npos ? end : end - 1);
  if (end == std::string::npos || begin == std::string::npos) return;
  const std::string module = adapter.substr(begin + 1, end - begin - 1);
  if (std::find(modules.begin(), modules.end(), module) == modules.end()) modules.push_back(module);
}

}  // namespace

saved_adapters load_adapters(const std::filesystem::path& folder) {
  saved_adapters loaded;
  with_config(folder, [&](const nlohmann::ordered_json& config) {
    refuse_unknown_adapters(folder, config);
    loaded.options.rank = config.at("r").get<std::int64_t>();
    loaded.options.alpha = config.at("lora_alpha").get<double>();
    // A string is a pattern, or "all-linear"; the tensors say which modules it means.
    if (config.at("target_modules").is_array())
      loaded.options.modules = config.at("target_modules").get<std::vector<std::string>>();
    loaded.base = folder / config.at(base_key).get<std::string>();
    if (!std::filesystem::is_directory(loaded.base))
      throw policy_error((folder / config_file).string() + ": " + base_key + ": has '" +
                         config.at(base_key).get<std::string>() +
                         "', expected the folder of the model that the adapters belong to, on this "
                         "machine");
  });
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
      loaded.adapters.all()[name] = tensor.to(at::kFloat);
      note_module(name, loaded.options.modules);
    }
  } catch (const std::runtime_error& e) {
    throw policy_error((folder / weights_file).string() + ": " + e.what());
  }
  return loaded;
}

}  // namespace hone
