#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/devices/program_session.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/statistics.hpp"
#include "evaluation/judge/verification.hpp"

namespace hone {

// What one case of one task is timed on: so many sets of inputs at addresses of their own, with
// fresh contents before every use. Kept from one measurement to the next.
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

// How many sets a case's timing may hold: enough calls for a batch, within a budget of memory for
// inputs and outputs.
std::size_t affordable_sets(std::size_t bytes_a_call, std::size_t memory_budget);

// The two programs that are compared, each in a fresh process, and what is right.
struct timed_pair {
  program_session& candidate;
  program_session& reference;
  reference_oracle& oracle;
};

// A program fails while it is timed.
struct timing_failure {
  program_failure why;
};

struct timing_limits {
  std::chrono::milliseconds call{10000};
  double floor_us_a_byte = 0;  // of output that a call writes: no call can be faster
};

struct case_timing {
  program_failure failure;  // outcome OK: none
  ratio_summary ratio;
  double floor_us = 0;      // no call could be faster
  double reference_us = 0;  // medians a call
  double candidate_us = 0;
  double reference_wall_us = 0;
  double candidate_wall_us = 0;
  std::uint32_t rounds = 0;
  std::vector<double> log_ratios;
  struct baseline {
    std::string name;
    double us = 0;
  };
  std::vector<baseline> baselines;  // beside the eager reference
  struct kernel_use {
    std::uint32_t kernel = 0;  // its number in the artifact
    std::uint32_t threads = 0;
    std::uint64_t blocks = 0;
    std::uint32_t dynamic_shared_bytes = 0;
    double occupancy = 0;
  };
  std::vector<kernel_use> kernels;  // a GPU's
  std::uint64_t bytes = 0;          // that a call reads and writes at least; 0: not counted
  std::uint64_t flops = 0;   // that the reference's products and convolutions take; 0: it has none,
                             // or they are not counted
  double train_us = 0;       // a call of many without a pause, by events
  double traced_us = 0;      // by events again, while CUPTI looks on, which takes time
  double train_span_us = 0;  // by CUPTI; 0: it may not look
  double train_busy_us = 0;  // of which any kernel ran
  std::string throttled;     // GPU: what slowed it down before or after; empty: nothing
  double unseen_us = 0;  // GPU: what the host waits for a call beyond its clock, and beyond that of
                         // the reference's calls
};

// Multiplies every speed-up of a measurement by exp(log_factor), and its interval.
void scale_speedups(double log_factor, case_timing& timing);

// Decimals are cut, not rounded.
std::string print_number(double value, std::size_t decimals);

// Whether a call took less time than writing its outputs does. Nothing: it did not.
std::optional<program_failure> find_impossible_time(double call_us, double floor_us);

// Times one case as paired rounds: evaluation.md section 3. Reference and candidate alternate in an
// order drawn each round; a batch is enough calls on different inputs; outputs of batches that
// nobody can foresee are checked.
case_timing time_case(const timed_pair& pair, timed_inputs& inputs, const timing_rules& rules,
                      const timing_limits& limits, random_stream& random);

}  // namespace hone
