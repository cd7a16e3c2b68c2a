#include "policy/training/checkpoint.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "messages/ids.hpp"
#include "messages/plain_message.hpp"
#include "policy/files.hpp"
#include "process/sync_to_disk.hpp"
#include "process/write_failure.hpp"

namespace hone {
namespace {

using nlohmann::json;

// Files of a policy's folder that every checkpoint has, and further files that other programs
// read.
constexpr std::array<const char*, 2> needed_files = {"config.json", "tokenizer.json"};
constexpr std::array<const char*, 8> other_files = {"generation_config.json",
                                                    "tokenizer_config.json",
                                                    "special_tokens_map.json",
                                                    "added_tokens.json",
                                                    "chat_template.jinja",
                                                    "chat_template.json",
                                                    "vocab.json",
                                                    "merges.txt"};

std::string hash_of(const std::filesystem::path& path) {
  return to_string(content_id<artifact_id>({mapped_file(path).bytes()}));
}

void sync(const std::filesystem::path& path) {
  if (!sync_to_disk(path)) throw policy_error(path.string() + ": cannot be synced to disk");
}

json load_index(const std::filesystem::path& folder) {
  try {
    return json::parse(read_policy_file(folder / "checkpoint.json"));
  } catch (const json::exception& e) {
    throw policy_error((folder / "checkpoint.json").string() + ": is damaged: " + plain_message(e));
  }
}

// Writes a checkpoint under a temporary name and renames it. `fill` writes all files except
// checkpoint.json into the folder that is passed to it.
void save_whole(const std::filesystem::path& folder, const training_progress& progress,
                bool has_weights, const std::function<void(const std::filesystem::path&)>& fill) {
  std::filesystem::path unfinished = folder;
  unfinished += ".unfinished";
  std::filesystem::remove_all(unfinished);
  try {
    std::filesystem::create_directories(unfinished);
    fill(unfinished);
    json index = {{"has_weights", has_weights},
                  {"files", json::object()},
                  {"numbers", progress.numbers},
                  {"texts", progress.texts}};
    for (const auto& file : std::filesystem::directory_iterator(unfinished)) {
      index["files"][file.path().filename().string()] = hash_of(file.path());
      sync(file.path());
    }
    std::ofstream out(unfinished / "checkpoint.json");
    out << index.dump(1) << "\n";
    out.close();
    if (!out) throw policy_error(write_failure(unfinished / "checkpoint.json"));
    sync(unfinished / "checkpoint.json");
    sync(unfinished);
    std::filesystem::rename(unfinished, folder);
    sync(folder.parent_path());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(unfinished, ignored);
    throw;
  }
}

void copy_policy_files(const std::filesystem::path& policy, const std::filesystem::path& into) {
  for (const char* name : needed_files) std::filesystem::copy_file(policy / name, into / name);
  for (const char* name : other_files) {
    if (std::filesystem::exists(policy / name))
      std::filesystem::copy_file(policy / name, into / name);
  }
}

}  // namespace

std::set<std::string> policy_files() {
  std::set<std::string> names(std::begin(needed_files), std::end(needed_files));
  names.insert(std::begin(other_files), std::end(other_files));
  return names;
}

void save_adapter_checkpoint(const std::filesystem::path& folder,
                             const std::filesystem::path& policy, const decoder_weights& adapters,
                             const adapter_options& o, const optimizer_moments& training,
                             const training_progress& progress) {
  save_whole(folder, progress, true, [&](const std::filesystem::path& into) {
    copy_policy_files(policy, into);
    save_adapters(into, adapters, o, policy);
    training.save(into / "optimizer.safetensors");
  });
}

void save_checkpoint(const std::filesystem::path& folder, const std::filesystem::path& policy,
                     const decoder_weights& weights, const optimizer_moments* training,
                     const training_progress& progress) {
  save_whole(folder, progress, true, [&](const std::filesystem::path& into) {
    copy_policy_files(policy, into);
    weights.save(into / "model.safetensors");
    if (training != nullptr) training->save(into / "optimizer.safetensors");
  });
}

void save_checkpoint(const std::filesystem::path& folder, const training_progress& progress) {
  save_whole(folder, progress, false, [](const std::filesystem::path&) {});
}

std::optional<std::string> find_checkpoint_damage(const std::filesystem::path& folder) {
  try {
    const json index = load_index(folder);
    const auto files = index.at("files").get<std::map<std::string, std::string>>();
    if (index.at("has_weights").get<bool>() && !files.contains("model.safetensors") &&
        !files.contains("adapter_model.safetensors"))
      return (folder / "checkpoint.json").string() +
             ": has_weights is true, but neither model.safetensors nor adapter_model.safetensors "
             "is listed";
    for (const auto& [name, hash] : files) {
      if (name.find('/') != std::string::npos)
        return (folder / "checkpoint.json").string() + ": is damaged";
      if (hash_of(folder / name) != hash)
        return (folder / name).string() + ": is damaged (its hash is not the one that was written)";
    }
    return std::nullopt;
  } catch (const policy_error& e) {
    return e.what();
  } catch (const json::exception& e) {
    return (folder / "checkpoint.json").string() + ": is damaged: " + plain_message(e);
  }
}

training_progress load_training_progress(const std::filesystem::path& folder) {
  try {
    const json index = load_index(folder);
    return {index.at("numbers").get<std::map<std::string, double>>(),
            index.value("texts", std::map<std::string, std::string>())};
  } catch (const json::exception& e) {
    throw policy_error((folder / "checkpoint.json").string() + ": is damaged: " + plain_message(e));
  }
}

}  // namespace hone
