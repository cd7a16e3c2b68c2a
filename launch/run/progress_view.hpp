#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "actors/telemetry.hpp"
#include "launch/run/run_pace.hpp"

namespace hone {

// Shows a run's progress on standard output: on a terminal a block of lines that is redrawn in
// place, otherwise a line at most every ten seconds. Thread-safe.
class progress_view {
 public:
  progress_view();
  // Takes what the run's stages are to do, for the time left.
  void expect(std::map<Stage, stage_work> work);
  // Shows the state of the run. Has no effect if the snapshot does not contain one.
  void show(const node_snapshot& snapshot);
  // Prints a line that stays: on a terminal, the block continues below it.
  void message(const std::string& line);

 private:
  void measure_pace(const node_snapshot& snapshot);
  // Returns the block of lines for a terminal.
  std::string draw(const node_snapshot& snapshot) const;
  // Returns stage, step, times and speed.
  std::string summarize(const node_snapshot& snapshot) const;

  std::mutex lock_;
  bool is_terminal_;
  std::size_t drawn_lines_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_line_;
  run_pace pace_;
  // The numbers of tokens that all generators had written at `tokens_at_` and the learner had
  // trained on at `trained_at_`, and the rates until then, in tokens per second.
  double written_ = 0;
  double writing_rate_ = 0;
  double trained_ = 0;
  double training_rate_ = 0;
  std::chrono::steady_clock::time_point tokens_at_;
  std::chrono::steady_clock::time_point trained_at_;
};

// Returns what a run does at present and what the learner therefore waits for, such as "the learner
// waits for samples, 32 samples are being written, 5 evaluations are under way".
std::string activity_text(const node_snapshot& snapshot);

}  // namespace hone
