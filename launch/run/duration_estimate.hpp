#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "launch/run/run_pace.hpp"
#include "policy/training/curriculum.hpp"

namespace hone {

// Measurements of a dry run on this machine, in seconds.
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

// Estimates how long a run takes that judges `documents` of a corpus, trains on them or on a stream
// as `sft` says, and then writes samples in `stages`. Judging and training overlap, so the slower
// one counts, up to the time limit of the stage. The time in which the policy writes is left out.
expected_duration estimate_duration(std::size_t documents, const sft_stage_options& sft,
                                    bool is_stream, const std::map<Stage, stage_work>& stages,
                                    const measured_pace& pace);

// Returns the line of a dry run about it.
std::string describe(const expected_duration& expected);

}  // namespace hone
