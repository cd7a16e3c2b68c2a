#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "actors/telemetry.hpp"

namespace hone {

// The file history.jsonl of a run: every ten seconds one JSON object with queues, busy shares,
// clocks, counts and lag, for the page /cluster. Holds at most max_rows rows: when there are more,
// every second row of the older half is removed, so that old times are coarser. Must be used by one
// thread at a time.
class history_file {
 public:
  static constexpr std::uint64_t interval_ms = 10'000;
  static constexpr std::size_t max_rows = 10'000;

  // Counts the rows that a run before its resumption has written, and removes a cut line.
  explicit history_file(std::filesystem::path path);

  // Appends a row if interval_ms have passed since the last one. Failures are ignored: a run does
  // not end because its history cannot be written.
  void note(const node_snapshot& all_nodes, std::uint64_t now_ms);

 private:
  void thin_out();

  std::filesystem::path path_;
  std::size_t rows_ = 0;
  std::uint64_t last_ms_ = 0;
  std::map<std::string, double> busy_seconds_;  // of each actor, at the last row
};

}  // namespace hone
