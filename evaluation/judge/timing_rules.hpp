#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "evaluation/judge/statistics.hpp"

namespace hone {

// The rules by which a case is timed and timing stops. Their values depend on the kind of device
// (evaluation.md section 3): the defaults are the CPU's, timing_rules.cpp changes those that differ
// on a GPU and decides by them. Times are in nanoseconds, widths relative to the middle of the
// interval.
struct timing_rules {
  // Rules for stopping.
  double target_width = 0.05;    // half-width of the 95 % interval that is narrow enough
  double doubling_width = 0.08;  // half-width beyond which the budget is doubled
  double unstable_width = 0.15;  // half-width beyond which timing ends in `unstable`
  // Variance of the buckets' speed-ups, relative to the median, beyond which a measurement is
  // `unstable` regardless of its width.
  double unstable_variance = std::numeric_limits<double>::infinity();
  // Rounds from which that counts: before them, more rounds are made, until a bucket has three and
  // its median bears a disturbed one.
  std::size_t rounds_of_full_buckets = 21;
  double clocked_budget_ns = 0.25e9;  // clocked time; doubled at most once for precision
  // Rounds and budgets before which nothing is `unstable`: some more rounds cost less than another
  // measurement in other processes.
  std::size_t rounds_before_unstable = 7;
  double budgets_before_unstable = 2;
  std::size_t min_rounds = 7;
  std::size_t min_rounds_of_long_calls = 7;  // where these use up the budget
  // Where the rounds have taken `very_long_budgets` times the budget and agree.
  std::size_t min_rounds_of_very_long_calls = 7;
  double very_long_budgets = 4;
  double hopeless_ratio = 0.2;  // a candidate more than five times slower needs no precision
  std::size_t hopeless_rounds = 3;
  // A difference smaller than `near_equal` (in log ratio) is accepted only after
  // `near_equal_rounds` rounds, or when the budget is used up, so that chance favors a score of 1.
  double near_equal = 0.12;
  std::size_t near_equal_rounds = 21;
  // The log ratio of a first measurement that this timing only has to confirm. Where the rounds
  // agree with it after `confirming_rounds`, no more of them are made; three are enough where they
  // have taken `very_long_budgets` times the budget, or where calls are very long.
  std::optional<double> expected_log_ratio;
  double confirming_agreement = 0.03;  // in log ratio
  std::size_t confirming_rounds = 7;
  std::size_t confirming_rounds_of_very_long_calls = 3;
  double equal_log_ratio = 0;   // log ratio of two equal programs in the current processes
  double equal_half_width = 0;  // half of the interval of equal_log_ratio

  // The parts of a round.
  double warm_up_ns = 15e6;
  // Checks every run of a candidate's warm-up, or only the last one, where checks are expensive.
  bool checks_every_warm_up_run = true;
  double lead_in_ns = 2e6;  // uncounted calls before a batch, since other processes ran before it
  double batch_ns = 6e6;    // least time of a batch
  // Least number of runs of a batch, if calls are short enough. The time of the fastest run counts:
  // other work on the machine can only make a run slower, and on a shared machine it slows most
  // runs.
  double runs_per_batch = 5;
  std::size_t min_runs_per_batch = 1;  // even if calls are long
  std::size_t max_runs_per_batch = 64;
  std::uint64_t new_parameters_one_in = 1;  // one round in this number gets new parameters

  // One round in this number has other contents than declared. It does not count, because calls may
  // take another time with them. Of a checked run of the first such rounds, so many calls are
  // checked, and one call in later rounds: long timings have many.
  std::uint64_t others_one_in = 4;
  std::size_t checks_of_other_runs = 1;
  std::size_t first_other_rounds = 3;
  // After the last round, a call with each of so many other distributions is made and checked, and
  // one with other parameters; none of either if this is 0.
  std::size_t last_checks = 8;

  // Of the batches that count, on average one in `check_one_in` has a checked run, early and late
  // ones alike. Every run that is faster than `suspicious_ratio` times the fastest checked run is
  // checked as well. A program must not gain by being wrong occasionally.
  std::uint64_t check_one_in = 2;
  double suspicious_ratio = 0.95;

  // Largest relative difference between a confirming measurement and the first.
  double reverify_agreement = 0.25;
};

timing_rules cpu_timing_rules();
timing_rules gpu_timing_rules();
// Returns rules for calls that are runs by themselves, each of which is as exact as a run of many
// short ones. Every round gets new parameters, since few calls see few places in memory. `call_ns`
// is how long a call takes: very long ones are confirmed by three rounds, whatever these take.
timing_rules rules_of_long_calls(timing_rules rules, double call_ns);
// How precise a process bias has to be: `coarse` is enough for a measurement that confirms another.
enum class bias_precision { coarse, fine };
// Returns the rules for timing the reference of a case against itself on a GPU, to find the process
// bias: rounds are those of the case, and timing stops by other rules. `is_long`: its calls are
// runs by themselves.
timing_rules gpu_calibration_rules(timing_rules of_case = gpu_timing_rules(),
                                   bias_precision wanted = bias_precision::fine,
                                   bool is_long = false);
// Returns the rules for a GPU and a launch-bound reference. Such a timing measures the processor,
// which other programs use as well, so measurements may spread as far as on a CPU device.
// `call_ns`: the length of a call.
timing_rules launch_bound_timing_rules(double call_ns = 0);
// One round in this number gives a Python module new parameters: they are a new instance, whose
// first calls may be slow.
inline constexpr std::uint64_t rounds_of_an_instance = 7;
// Returns the rules for Python modules on a GPU. The judge's clock varies by microseconds, so short
// calls have wide intervals instead of being `unstable`. `reference_us`: the time of a call.
timing_rules module_rules(timing_rules of_case, double reference_us);
// Returns the rules for a screening: rounds and checks of the same kind, but as few as can order
// the variants of a group.
timing_rules screening_rules(timing_rules of_case);

// go_on: another round is needed. settled: the interval is narrow enough. confirmed: the rounds
// agree with a first measurement. hopeless: the candidate is so slow that its score needs no
// precision. unstable: the interval is too wide after `budgets_before_unstable` budgets.
enum class timing_decision { go_on, settled, confirmed, hopeless, unstable };

// Returns true if the buckets vary more than `unstable_variance` allows.
bool spreads_too_far(const timing_rules& rules, const ratio_summary& ratio);

// Decides after a round whether timing goes on. `log_ratios`: ln(reference / candidate), one per
// round. `clocked_ns`: time spent on rounds so far.
timing_decision decide(const timing_rules& rules, std::span<const double> log_ratios,
                       double clocked_ns);

}  // namespace hone
