#pragma once

#include <chrono>
#include <cstddef>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/timing_rules.hpp"
#include "evaluation/program/session.hpp"

namespace hone {

// What one case of a task is timed on, in host memory: `sets` input sets at their own addresses,
// with fresh contents before every use. Kept from one measurement to the next.
struct timed_inputs {
  timed_inputs(const input_recipe& from, std::size_t sets_, random_stream& random)
      : recipe(from),
        inputs(from, reservoir::of::inputs, random),
        parameters(from, reservoir::of::parameters, random),
        sets(sets_) {}

  input_recipe recipe;
  reservoir inputs;
  reservoir parameters;
  std::size_t sets;
};

// Returns how many input sets the timing of a case may have: enough calls for a batch, within
// `memory_budget` bytes for inputs and outputs.
std::size_t affordable_sets(std::size_t bytes_per_call, std::size_t memory_budget);

// The two programs that are compared, each in a fresh process, and the oracle of their task.
struct timed_pair {
  program_session& candidate;
  program_session& reference;
  reference_oracle& oracle;
};

struct timing_limits {
  std::chrono::milliseconds call{10000};  // for one call
  double floor_us_per_byte = 0;           // of output that a call writes: no call can be faster
};

// Times one case of a task in host memory, by the protocol of paired_timing.hpp. What a candidate
// does between its runs, while the clock stands still, is charged, and is `late_work` where it is
// much. Throws reference_error if the reference fails.
case_timing time_case(const timed_pair& pair, timed_inputs& inputs, const timing_rules& rules,
                      const timing_limits& limits, random_stream& random);

}  // namespace hone
