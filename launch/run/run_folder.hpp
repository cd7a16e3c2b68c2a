#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/caf_records.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// Holds a run's directory: the resolved configuration (config.toml), pool/, checkpoints/,
// metrics.jsonl, trace.json, address, report.txt and report.json. A lock on the file `lock` keeps
// other processes out until this object or the process ends.
class run_folder {
 public:
  // Creates the directory if needed, locks it, and deletes checkpoints that were not finished.
  // Throws std::runtime_error if another process holds the lock, if there is a run already and
  // `resume` is false, if there is none and `resume` is true, or if the directory has files of
  // something else.
  run_folder(const std::filesystem::path& path, bool resume);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path pool() const { return path_ / "pool"; }

  // The version from which an interrupted run continues: the newest one of the chain whose
  // checkpoint is intact.
  struct resume_point {
    // Versions from the root to that version; empty if the run has no version yet.
    std::vector<version_record> chain;
    bool leaves_branch = false;      // the chain's newer versions are abandoned
    std::uint64_t next_version = 0;  // number that the next version gets, which no group names
    std::set<std::string> scored_device_types;  // types on which the pool's variants have scores
    bool is_finished() const { return !chain.empty() && chain.back()->getComplete(); }
    // The stages that learn are over.
    bool compares() const {
      return !chain.empty() && chain.back()->getStage() == schema::Stage::COMPARISON;
    }
    // Goes back to the last version of the contrastive stage, so that it can go on. Returns the
    // number of steps that the stage had made, or nullopt if there is no such version.
    std::optional<std::int64_t> reopen_contrastive_stage();
  };
  // Passes a line about each damaged checkpoint to `say`. Throws std::runtime_error if no
  // checkpoint is intact, and pool_error if the pool cannot be read.
  resume_point find_resume_point(const std::function<void(const std::string&)>& say) const;

  // Writes a file of the directory atomically. Throws std::runtime_error.
  void write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
  unique_fd lock_;
};

// Returns true if a process holds the lock of a run's directory.
bool is_live(const std::filesystem::path& directory);

// Returns the command with which the run in a directory goes on, quoted for a shell: `hone up` for
// one that `hone up` has started. Its configuration is the one that the directory keeps. A finished
// run goes on by twenty steps.
std::string command_to_go_on(const std::filesystem::path& directory, bool is_finished);

// Returns the command that shows the run in a browser, quoted for a shell.
std::string command_to_watch(const std::filesystem::path& directory);

}  // namespace hone
