#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "messages/caf_records.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// A run's directory: the resolved configuration (config.toml), pool/, checkpoints/, metrics.jsonl,
// trace.json, address, report.txt and report.json. Held by one process at a time.
class run_folder {
 public:
  // Throws std::runtime_error when another process runs there, or when there is a run already and
  // `resume` is false (or none and it is true).
  run_folder(const std::filesystem::path& path, bool resume);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path pool() const { return path_ / "pool"; }

  // Where an interrupted run goes on: the newest version whose checkpoint is intact.
  struct resume_point {
    std::vector<version_record> chain;  // from the root to that version
    bool leaves_branch = false;         // newer versions are given up
    std::uint64_t next_version = 0;
  };
  // `say` hears of damaged checkpoints. Throws std::runtime_error when there is none to go on from.
  resume_point find_resume_point(const std::function<void(const std::string&)>& say) const;

  void write(const std::string& name, const std::string& text) const;  // atomically

 private:
  std::filesystem::path path_;
  unique_fd lock_;
};

}  // namespace hone
