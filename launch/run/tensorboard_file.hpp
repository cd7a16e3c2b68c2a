#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "actors/learner.hpp"
#include "messages/caf_records.hpp"

namespace hone {

// An event file for TensorBoard, tensorboard/events.out.tfevents.TIME.HOST.PID in a run's folder:
// the numbers of metrics.jsonl as scalars, with the version as their step. Every process that works
// on a run writes a new file, so a record that a killed process has begun stays the last of its
// file, where readers ignore it. Must be used by one thread at a time.
//
// Format: TFRecord frames (length and masked CRC-32C of both length and content) around messages of
// tensorflow/core/util/event.proto.
class tensorboard_file {
 public:
  // Creates the file. Version numbers are never reused, so no step repeats. The points of an
  // abandoned branch, which metrics.jsonl keeps as well, are in earlier files: the file begins with
  // TensorBoard's mark of a restart at `first_version`, which discards points from that version on.
  // Throws std::runtime_error.
  tensorboard_file(const std::filesystem::path& run_folder, std::uint64_t first_version);

  // Appends the numbers of a training step and flushes them. Throws std::runtime_error if it
  // cannot.
  void write(const version_record& version, const learned_step& learned);

 private:
  void append(const std::string& event);

  std::filesystem::path path_;
  std::ofstream out_;
};

// Returns the tag under which TensorBoard shows a number of metrics.jsonl: "outcome/ok" for
// "share_ok".
std::string tensorboard_tag(const std::string& number);

}  // namespace hone
