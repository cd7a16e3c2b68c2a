#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "policy/network/adapters.hpp"
#include "policy/network/decoder_weights.hpp"
#include "policy/training/optimizer.hpp"

namespace hone {

// A checkpoint is a Hugging Face model folder (config.json, tokenizer.json, model.safetensors).
// optimizer.safetensors holds the optimizer's state if training can continue from the checkpoint.
// checkpoint.json holds a hash of each other file and the training_progress. A checkpoint appears
// completely or not at all: its files are written to a folder of another name and synced, and that
// folder is then renamed.

// Returns the path of a version's checkpoint, relative to the run's folder.
inline std::string checkpoint_name(std::uint64_t version) {
  return "checkpoints/" + std::to_string(version);
}

// What training needs besides weights and moments to continue as if it had not been interrupted:
// numbers and texts by name, such as counts of updates and the states of random streams.
struct training_progress {
  std::map<std::string, double> numbers{};
  std::map<std::string, std::string> texts{};
};

// Returns the names of the files of a policy's folder that a checkpoint has as they are.
std::set<std::string> policy_files();

// Writes a checkpoint to `folder`, which must not exist. Copies policy_files() from the folder
// `policy`; omits optimizer.safetensors if `training` is null. Throws policy_error, or
// std::filesystem::filesystem_error (such as for a full disk). A failed call leaves nothing
// behind.
void save_checkpoint(const std::filesystem::path& folder, const std::filesystem::path& policy,
                     const decoder_weights& weights, const optimizer_moments* training,
                     const training_progress& progress);

// Writes a checkpoint of adapters instead of weights: adapter_model.safetensors and
// adapter_config.json, which names the folder `policy` of the other weights. The rest is as above.
void save_adapter_checkpoint(const std::filesystem::path& folder,
                             const std::filesystem::path& policy, const decoder_weights& adapters,
                             const adapter_options& o, const optimizer_moments& training,
                             const training_progress& progress);

// Writes the checkpoint of a scripted policy, which has no weights: it holds `progress` alone.
// `folder` must not exist; errors are those of the other overload.
void save_checkpoint(const std::filesystem::path& folder, const training_progress& progress);

// Function that writes a checkpoint whose contents are already in host memory to `folder`, which
// must not exist. Writing needs no GPU, so the GPU lease can end before it. Errors are those of
// save_checkpoint.
using taken_checkpoint = std::function<void(const std::filesystem::path& folder)>;

// Compares every file of a checkpoint with its recorded hash. Returns a message that names the
// missing or damaged file, or nullopt if the checkpoint is intact.
std::optional<std::string> find_checkpoint_damage(const std::filesystem::path& folder);

// Returns the progress of a checkpoint; checkpoints of earlier versions of Hone have no texts.
// Throws policy_error if checkpoint.json is missing or damaged.
training_progress load_training_progress(const std::filesystem::path& folder);

}  // namespace hone
