#pragma once

#include <filesystem>
#include <fstream>

#include "actors/learner.hpp"
#include "messages/caf_records.hpp"

namespace hone {

// The file metrics.jsonl of a run: one JSON object per training step. Must be used by one thread at
// a time.
class metrics_file {
 public:
  // Removes a line that a killed process has begun.
  explicit metrics_file(const std::filesystem::path& path);

  // Appends a line and flushes it. Throws std::runtime_error if it cannot.
  void write(const version_record& version, const learned_step& learned);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace hone
