#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/judge/statistics.hpp"
#include "evaluation/program/failure.hpp"

namespace hone {

// Thrown if a candidate fails while it is timed, which ends the timing of the case.
struct timing_failure {
  program_failure why;
};

// The result of timing one case. Times are microseconds per call, medians over rounds unless stated
// otherwise.
struct case_timing {
  std::optional<program_failure> failure;

  // Timing has ended early, because its rounds agree with a first measurement's.
  bool is_confirmed = false;
  ratio_summary ratio;
  std::uint32_t rounds = 0;
  std::vector<double> log_ratios;  // ln(reference / candidate), one per round
  double reference_us = 0;
  double candidate_us = 0;
  double reference_wall_us = 0;
  double candidate_wall_us = 0;
  // Of the fastest run of a round, by the clock without charges; the median over the rounds. Where
  // a virtual machine is not given its processor, the system may charge a run with no time at all.
  double clocked_candidate_us = 0;
  double floor_us = 0;  // the floor: no call can be faster

  struct baseline {
    std::string name;
    std::optional<double> us;
    std::string problem;  // why it has no time
  };
  std::vector<baseline> baselines;  // in addition to the eager reference

  // The following are measured on GPUs only.
  struct kernel_use {
    std::uint32_t kernel = 0;  // index in the artifact
    std::uint32_t threads = 0;
    std::uint64_t blocks = 0;
    std::uint32_t dynamic_shared_bytes = 0;
    double occupancy = 0;  // resident threads over the most that a multiprocessor can hold
  };
  std::vector<kernel_use> kernels;
  std::uint64_t bytes = 0;   // least bytes that a call reads and writes; 0: not counted
  std::uint64_t flops = 0;   // of the reference's products and convolutions; 0: none or not counted
  double burst_us = 0;       // per call of the untraced burst, by events
  double traced_us = 0;      // per call of the burst that CUPTI traces, by events
  double burst_span_us = 0;  // per call of the traced burst, by CUPTI; 0: tracing is not possible
  double burst_busy_us = 0;  // part of burst_span_us during which any kernel ran
  std::string throttled;     // why the GPU was throttled before or after; empty: it was not
  double unseen_us = 0;      // see unseen_beside() in clock_checks.hpp
  bool has_unseen_time = false;  // so much that another timing may differ
};

// Multiplies every speed-up of a measurement, and its interval, by exp(log_factor).
void scale_speedups(double log_factor, case_timing& timing);

// Lowers the speed-up of a Python module to the least that it may be. Both sides' calls include
// `harness_us` of the judge's own work in the process, which a hostile module may leave out: the
// reference is taken to be that much faster. Does not lower a speed-up below 1; the interval keeps
// its upper end.
void discount_harness(double harness_us, case_timing& timing);

// Prints a number with `decimals` decimals, at most six, truncated and not rounded.
std::string print_number(double value, std::size_t decimals);

// Returns a failure if a call took less time than the floor, which is the time to write its
// outputs.
std::optional<program_failure> find_impossible_time(double call_us, double floor_us);

}  // namespace hone
