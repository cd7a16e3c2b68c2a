#pragma once

#include <chrono>
#include <cstddef>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "evaluation/judge/timing_rules.hpp"
#include "evaluation/program/session.hpp"

namespace hone {

// The contents for timing one case of a task in host memory: reservoirs of inputs and parameters,
// and the number of input sets, each of which has separate addresses and gets fresh contents
// before every use. Kept from one measurement to the next. The recipe's oracle and case must
// outlive it.
struct timed_inputs {
  timed_inputs(const input_recipe& from, std::size_t sets_, std::vector<distribution> usable_,
               random_stream& random)
      : recipe(from),
        inputs(from, reservoir::of::inputs, random),
        parameters(from, reservoir::of::parameters, random),
        sets(sets_),
        usable(std::move(usable_)) {}

  input_recipe recipe;
  reservoir inputs;
  reservoir parameters;
  std::size_t sets;
  std::vector<distribution> usable;  // by checks, see usable_distributions()
};

// Returns the number of input sets for timing a case: as many as fit into `memory_budget` bytes, if
// a call's inputs and outputs take `bytes_per_call`, but at least 2 and at most 128.
std::size_t affordable_sets(std::size_t bytes_per_call, std::size_t memory_budget);

// The two programs that are timed against each other, each in a fresh process, and the oracle of
// their task.
struct timed_pair {
  program_session& candidate;
  program_session& reference;
  reference_oracle& oracle;
};

struct timing_limits {
  std::chrono::milliseconds call{10000};  // for one call
  double floor_us_per_byte = 0;           // floor of a call per byte of output that it writes
  // Processor time for staging a call, which a process may use between two runs.
  double outside_per_call_ns = 2e3;
};

// Times one case of a task in host memory, by the protocol of paired_timing.hpp. Processor time
// that a candidate uses between its runs, while the clock is stopped, is charged; if it exceeds a
// tenth of the candidate's time, the candidate is `late_work`. Everything passed by reference must
// outlive the call. Throws reference_error if the reference fails.
case_timing time_case(const timed_pair& pair, timed_inputs& inputs, const timing_rules& rules,
                      const timing_limits& limits, time_budget& budget, random_stream& random);

}  // namespace hone
