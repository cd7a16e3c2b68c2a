#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "actors/telemetry.hpp"

namespace hone {

// Shows a run's progress: on a terminal one screen that is drawn over, elsewhere a plain line now
// and then. Messages go above the screen. Safe on every thread.
class progress_view {
 public:
  progress_view();
  void show(const node_snapshot& snapshot);
  void message(const std::string& line);

 private:
  std::string draw(const node_snapshot& snapshot);
  std::string summarise(const node_snapshot& snapshot) const;

  std::mutex lock_;
  bool is_terminal_;
  std::size_t drawn_lines_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_line_;
  std::optional<double> stage_;  // the learner's, and where it stood when that was first seen
  std::chrono::steady_clock::time_point stage_began_;
  double stage_first_step_ = 0;
  double tokens_ = 0;
  double tokens_per_second_ = 0;
  std::chrono::steady_clock::time_point tokens_at_;
};

}  // namespace hone
