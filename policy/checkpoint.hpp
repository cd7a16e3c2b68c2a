#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "policy/optimizer.hpp"
#include "policy/transformer.hpp"

namespace hone {

// A folder that is a Hugging Face model (config.json, tokenizer.json, model.safetensors) and, for
// training, optimizer.safetensors; checkpoint.json has a hash of each file and the trainer's
// numbers. It appears whole or not at all: written under another name, synced, then renamed.
inline std::string checkpoint_name(std::uint64_t version) {
  return "checkpoints/" + std::to_string(version);
}  // in a run's folder

struct trainer_numbers {
  std::map<std::string, double> values;
};

// Saves into `folder`, which must not exist. config.json and tokenizer.json are taken from
// `policy`. Throws policy_error or std::filesystem::filesystem_error (a full disk), and then leaves
// nothing behind.
void save_checkpoint(const std::filesystem::path& folder, const std::filesystem::path& policy,
                     const decoder_weights& weights, const optimizer_moments* training,
                     const trainer_numbers& numbers);

// The same for a policy that has no weights (a scripted one): the numbers alone.
void save_checkpoint(const std::filesystem::path& folder, const trainer_numbers& numbers);

// A checkpoint that has been taken and is to be written into a folder, which must not exist: so a
// GPU is needed for a moment only. Errors as of save_checkpoint.
using taken_checkpoint = std::function<void(const std::filesystem::path& folder)>;

// Compares every file with its hash; what is wrong, naming the file, or nothing.
std::optional<std::string> find_checkpoint_damage(const std::filesystem::path& folder);

trainer_numbers load_trainer_numbers(const std::filesystem::path& folder);  // throws policy_error

}  // namespace hone
