#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launch/configuration.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// What a dry run has measured on this machine, in seconds.
struct measured_pace {
  double judging_s = 0;  // between two judged variants, with all devices of the first type
  double update_s = 0;   // of training, for each sequence of a batch; 0: not measured
};

struct expected_duration {
  struct part {
    std::string name;
    double minutes = 0;
    bool is_limited = false;  // by the stage's key `minutes`
  };
  std::vector<part> parts;
  double minutes = 0;  // of all parts
};

// Estimates how long a run takes that begins with `documents` of a corpus. In each stage, judging
// and training go on at the same time, so the slower one counts, up to the time limit of the stage.
// The time in which the policy writes is left out.
expected_duration estimate_duration(const configuration& c, const task_table& tasks,
                                    std::size_t documents, const measured_pace& pace);

// Returns the line of a dry run about it.
std::string describe(const expected_duration& expected);

}  // namespace hone
