#pragma once

#include <cstddef>
#include <cstdint>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/timed_checks.hpp"
#include "evaluation/judge/timing_rules.hpp"

namespace hone {

// The times of one run, in nanoseconds.
struct run_time {
  double call_ns = 0;     // per call, with charges; the ratios of rounds are computed from it
  double clocked_ns = 0;  // per call, by the clock alone, without charges
  double spent_ns = 0;    // the run's share of the measurement's budget
  double wall_ns = 0;     // the whole run by the wall clock
  std::size_t calls = 1;
};

// One of the two programs that are timed against each other, as a kind of device runs it. host_side
// in host_timing.cpp implements it on the CPU, gpu_side in backends/cuda/gpu_side.hpp on a GPU.
// Functions throw timing_failure if a candidate fails, and reference_error if a reference fails.
// Confined to one thread.
class timed_side {
 public:
  virtual ~timed_side() = default;

  // Writes the parameters that `contents` describes and runs prepare() at once, untimed.
  virtual void set_parameters(const drawn_contents& contents) = 0;
  // Between begin_warm_up() and end_warm_up(), the contents of calls may differ in a few elements
  // only. They are perturbations of the contents that belong to `seed`.
  virtual void begin_warm_up(std::uint64_t /*seed*/) {}
  virtual void end_warm_up() {}
  // Clocks this side's calls again, because what precedes a call may depend on the other side
  // (head_start.hpp). Called for the reference after both sides are warm.
  virtual void recalibrate() {}
  // Returns the nanoseconds of the shortest batch that is worth timing; 0 if any batch is.
  virtual double min_batch_ns() const { return 0; }
  // Begins a round. Called for both sides before either of them runs. The n-th call that a side
  // makes from now on has the n-th of the round's distributions, and the n-th contents that belong
  // to the seed, which is the same for both. A side whose checks make use of this heeds the seed;
  // others may ignore it.
  virtual void begin_round(const drawn_round& /*round*/) {}
  // Makes calls on fresh contents for about `target_ns`, at least one. All their outputs stay
  // readable until the next run.
  virtual run_time run(double target_ns) = 0;
};

// Times a candidate against a reference as paired rounds (evaluation.md section 3): warm-up by
// time; rounds in which each side makes a batch of calls, in random order; checks of calls that
// have been made, which no program can predict. In some rounds, contents have other distributions.
// Such rounds look like the others, are always checked, and do not count. Calls with all other
// distributions are checked after the last round. If `checks` is null, as for two equal programs,
// no call is checked and all contents are as declared.
//
// Fills in the ratio, the medians, the rounds and a failure; the caller fills in the rest of
// case_timing. A timing_failure ends the measurement and becomes its failure. Throws
// reference_error if the reference fails.
case_timing time_pair(timed_side& candidate, timed_side& reference, const timing_rules& rules,
                      random_stream& random, timed_checks* checks);

}  // namespace hone
