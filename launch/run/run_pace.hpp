#pragma once

#include <map>
#include <optional>

#include "messages/names.hpp"

namespace hone {

// How much a stage of learning is to do.
struct stage_work {
  double samples = 0;             // that the policy writes in it
  std::optional<double> limit_s;  // after which the stage ends
};

// Estimates how long a run still takes, from the time that the finished steps have taken. Later
// stages are estimated by the time per sample, so nothing is known of them until the first step of
// a stage in which the policy writes. Times are in seconds.
class run_pace {
 public:
  // `work`: of the stages in which the policy writes.
  explicit run_pace(std::map<Stage, stage_work> work) : work_(std::move(work)) {}

  struct reading {
    Stage stage = Stage::SFT;
    double step = 0;                // finished steps of the stage
    double steps = 0;               // planned steps of the stage
    std::optional<double> limit_s;  // until the time limit of the stage
    bool has_begun = true;          // false: the stage waits for what its first step needs
  };
  // Takes a reading at `now_s`, which is of any clock that does not go back.
  void observe(const reading& r, double now_s);

  // Return nullopt as long as it is unknown.
  std::optional<double> stage_left_s() const;
  std::optional<double> run_left_s() const;

 private:
  double samples_in(Stage stage) const;

  std::map<Stage, stage_work> work_;
  std::optional<reading> first_;  // of the current stage
  double first_s_ = 0;
  reading last_;
  double last_s_ = 0;
  std::optional<double> s_per_sample_;
};

}  // namespace hone
