#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "actors/telemetry.hpp"

namespace hone {

// Shows a run's progress on standard output: on a terminal a block of lines that is redrawn in
// place, otherwise a line at most every ten seconds. Thread-safe.
class progress_view {
 public:
  progress_view();
  // Shows the state of the run. Has no effect if the snapshot does not contain one.
  void show(const node_snapshot& snapshot);
  // Prints a line that stays: on a terminal, the block continues below it.
  void message(const std::string& line);

 private:
  // Returns the block of lines for a terminal.
  std::string draw(const node_snapshot& snapshot);
  // Returns one line about stage, lag, groups and speed.
  std::string summarise(const node_snapshot& snapshot) const;

  std::mutex lock_;
  bool is_terminal_;
  std::size_t drawn_lines_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_line_;
  // The learner's stage, the time at which this object first saw it, and the learner's step then.
  std::optional<double> stage_;
  std::chrono::steady_clock::time_point stage_began_;
  double stage_first_step_ = 0;
  // The number of tokens that all generators had written at `tokens_at_`, and the rate until then.
  double tokens_ = 0;
  double tokens_per_second_ = 0;
  std::chrono::steady_clock::time_point tokens_at_;
};

}  // namespace hone
