#pragma once

#include <cstddef>
#include <cstdint>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "evaluation/judge/timed_checks.hpp"
#include "evaluation/judge/timing_rules.hpp"

namespace hone {

// What one run of calls took. Nanoseconds.
struct run_time {
  double call_ns = 0;     // charged per call; the ratio of a round is made of it
  double clocked_ns = 0;  // per call, by the clock alone, without charges
  double spent_ns = 0;    // the run's share of the measurement's budget
  double wall_ns = 0;     // the whole run by the wall clock
  std::size_t calls = 1;
};

// One of the two programs that are timed against each other, as a kind of device runs it. Sessions
// on the CPU implement it in host_side.hpp, sessions on a GPU in backends/cuda/gpu_side.hpp.
// Functions throw timing_failure if a candidate fails, reference_error if a reference does.
// Confined to one thread.
class timed_side {
 public:
  virtual ~timed_side() = default;

  // Sets new parameters, which belong to `seed`, and runs prepare() at once, untimed.
  virtual void set_parameters(std::uint64_t seed) = 0;
  // Between the two, all calls may get contents that differ in a few elements only.
  virtual void begin_warm_up(std::uint64_t /*seed*/) {}
  virtual void end_warm_up() {}
  // Adapts to what the other side has shown to need; called for the reference after both are warm.
  virtual void recalibrate() {}
  // Returns the time of the shortest batch that is worth timing; 0 if any is.
  virtual double least_batch_ns() const { return 0; }
  // Called for both sides before either of them runs in a round.
  virtual void begin_round() {}
  // Makes calls on fresh contents for about `target_ns`, at least one. All their outputs stay
  // readable until the next run.
  virtual run_time run(double target_ns) = 0;
};

// Times a candidate against a reference as paired rounds (evaluation.md section 3): warm-up by
// time; rounds in which each side makes a batch of calls, in random order; checks of outputs that
// no program can foresee; at the end, one uncounted batch and a check for every distribution.
// Without `checks`, for two equal programs, nothing is checked.
//
// Fills in the ratio, the medians, the rounds and a failure; the rest of case_timing is the
// caller's. A timing_failure ends the measurement and becomes its failure.
case_timing time_pair(timed_side& candidate, timed_side& reference, const timing_rules& rules,
                      random_stream& random, time_budget& budget, timed_checks* checks);

}  // namespace hone
