#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace hone {

// How a case is timed and when timing stops. The values belong to the kind of device (evaluation.md
// section 3); the defaults are the CPU's. Times in nanoseconds, widths relative to the middle of
// the interval.
struct timing_rules {
  // When to stop.
  double target_width = 0.05;    // half-width of the 95 % interval that is narrow enough
  double doubling_width = 0.08;  // half-width beyond which the budget is doubled
  double unstable_width = 0.15;  // half-width beyond which, after the doubled budget, is `unstable`
  // Variance of the buckets' speed-ups, relative to the median, beyond which the measurement is
  // `unstable` whatever the budget.
  double unstable_variance = std::numeric_limits<double>::infinity();
  double budget_ns = 0.25e9;  // clocked time; doubled at most once
  std::size_t min_rounds = 7;
  double hopeless_ratio = 0.2;  // a candidate more than five times slower needs no precision
  std::size_t hopeless_rounds = 3;
  // A difference smaller than `near_equal` (in log ratio) must show for `near_equal_rounds` rounds
  // within the budget: chance leans toward 1, not away from it.
  double near_equal = 0;
  std::size_t near_equal_rounds = 0;
  double equal_log_ratio = 0;   // log ratio of two equal programs in the processes of the moment
  double equal_half_width = 0;  // and half of the interval within which it is known

  // What a round is made of.
  double warm_up_ns = 15e6;
  double lead_in_ns = 2e6;  // uncounted calls before a batch: other processes have run in between
  double batch_ns = 6e6;    // least time of a batch
  // A batch has at least this many runs if calls are short enough, and counts as its fastest run:
  // other work on the machine only ever makes a run slower, and slows most runs on a shared one
  // (doc/decisions/003).
  double runs_per_batch = 5;
  std::size_t max_runs_per_batch = 64;
  std::uint64_t new_parameters_one_in = 1;  // rounds

  // Which batches are checked: one in `check_one_in` among the first `min_rounds` rounds, one in
  // `check_one_in_late` beyond, and every run that is faster than `suspicious_ratio` times the
  // fastest checked run. A program must not gain by being wrong now and then.
  std::uint64_t check_one_in = 2;
  std::uint64_t check_one_in_late = 8;
  double suspicious_ratio = 0.8;

  // How far a confirming measurement may be from the first, relative.
  double reverify_agreement = 0.25;
  // Time that timing a case may take beside five times what the reference takes.
  double time_budget_ns = 60e9;
};

timing_rules cpu_timing_rules();
timing_rules gpu_timing_rules();
// For timing the reference against itself on a GPU, to find the process bias.
timing_rules gpu_calibration_rules();
// For a GPU whose reference is launch-bound. The processor is what is timed then, and other
// programs use it as well, so measurements may spread as far as a processor's.
timing_rules launch_bound_timing_rules();

enum class timing_decision { go_on, settled, hopeless, unstable };

// Decides after each round. `log_ratios`: ln(reference / candidate), one per round. `clocked_ns`:
// time spent on rounds so far.
timing_decision decide(const timing_rules& rules, std::span<const double> log_ratios,
                       double clocked_ns);

}  // namespace hone
