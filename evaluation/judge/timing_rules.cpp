#include "evaluation/judge/timing_rules.hpp"

#include <algorithm>
#include <cmath>

#include "evaluation/judge/sampled_side.hpp"
#include "evaluation/judge/statistics.hpp"

namespace hone {
namespace {

// As few as can show a difference (process_bias.cpp).
constexpr std::size_t calibrating_rounds_of_long_calls = 6;

bool are_very_long(const timing_rules& rules, double clocked_ns) {
  return clocked_ns >= rules.very_long_budgets * rules.clocked_budget_ns;
}

// Returns the number of rounds before which timing ends only for a hopeless or confirmed candidate.
std::size_t least_rounds(const timing_rules& rules, double clocked_ns) {
  if (clocked_ns < rules.clocked_budget_ns) return rules.min_rounds;
  return are_very_long(rules, clocked_ns) ? rules.min_rounds_of_very_long_calls
                                          : rules.min_rounds_of_long_calls;
}

timing_decision decide_by_interval(const timing_rules& rules, std::span<const double> log_ratios,
                                   double clocked_ns) {
  if (log_ratios.size() == rules.hopeless_rounds &&
      median(log_ratios) < std::log(rules.hopeless_ratio))
    return timing_decision::hopeless;
  const std::size_t confirming = are_very_long(rules, clocked_ns)
                                     ? rules.confirming_rounds_of_very_long_calls
                                     : rules.confirming_rounds;
  if (rules.expected_log_ratio && log_ratios.size() >= confirming &&
      std::abs(median(log_ratios) - rules.equal_log_ratio - *rules.expected_log_ratio) <=
          rules.confirming_agreement)
    return timing_decision::confirmed;
  const bool is_budget_used = clocked_ns >= rules.clocked_budget_ns;
  if (log_ratios.size() < least_rounds(rules, clocked_ns)) return timing_decision::go_on;
  const interval logs = median_interval(log_ratios);
  const double width = relative_half_width({std::exp(logs.low), std::exp(logs.high)});
  const bool seems_unequal = logs.low > rules.equal_log_ratio + rules.equal_half_width ||
                             logs.high < rules.equal_log_ratio - rules.equal_half_width;
  const bool is_near_equal =
      std::abs(median(log_ratios) - rules.equal_log_ratio) < rules.near_equal;
  const bool is_unproven =
      seems_unequal && is_near_equal && log_ratios.size() < rules.near_equal_rounds;
  if (width <= rules.target_width && !is_unproven) return timing_decision::settled;
  if (!is_budget_used || log_ratios.size() < rules.min_rounds_of_long_calls)
    return timing_decision::go_on;
  if (width > rules.doubling_width && clocked_ns < 2 * rules.clocked_budget_ns)
    return timing_decision::go_on;
  if (width <= rules.unstable_width) return timing_decision::settled;
  const bool may_be_unstable =
      log_ratios.size() >= rules.rounds_before_unstable &&
      clocked_ns >= rules.budgets_before_unstable * rules.clocked_budget_ns;
  return may_be_unstable ? timing_decision::unstable : timing_decision::go_on;
}

}  // namespace

timing_rules cpu_timing_rules() { return {}; }

timing_rules gpu_timing_rules() {
  timing_rules rules;
  rules.target_width = 0.005;
  rules.doubling_width = 0.01;
  rules.unstable_width = 0.05;
  rules.unstable_variance = 0.005;
  rules.clocked_budget_ns = 0.25e9;
  rules.rounds_before_unstable = 14;
  rules.budgets_before_unstable = 4;
  rules.min_rounds = 14;
  rules.min_rounds_of_long_calls = 7;
  rules.min_rounds_of_very_long_calls = 6;
  rules.near_equal = 0.02;
  rules.near_equal_rounds = 84;
  rules.warm_up_ns = 4e6;
  rules.checks_every_warm_up_run = false;  // a check costs more than the warm-up
  rules.lead_in_ns = 0;                    // instead, the first call of a run does not count
  rules.batch_ns = 1.2e6;                  // including new contents, cache flushes and waiting
  rules.runs_per_batch = 1;
  rules.max_runs_per_batch = 1;
  rules.new_parameters_one_in = 2;
  rules.others_one_in = 8;
  rules.checks_of_other_runs = 3;
  rules.suspicious_ratio = 0.9;
  rules.reverify_agreement = 0.1;
  return rules;
}

timing_rules rules_of_long_calls(timing_rules rules, double call_ns) {
  if (call_ns >= very_long_call_ns) {
    rules.confirming_rounds = rules.confirming_rounds_of_very_long_calls;
    rules.last_checks = call_ns >= hardly_sampled_call_ns ? 1 : 3;
  }
  rules.new_parameters_one_in = 1;
  rules.others_one_in = timing_rules{}.others_one_in;
  rules.checks_of_other_runs = 1;
  rules.min_rounds = rules.min_rounds_of_long_calls;
  return rules;
}

timing_rules gpu_calibration_rules(timing_rules rules, bias_precision wanted, bool is_long) {
  // Processes hardly differ in how long they take for a long call.
  const bool is_fine = wanted == bias_precision::fine && !is_long;
  rules.target_width = is_fine ? 0.0015 : 0.005;
  rules.min_rounds = is_long ? calibrating_rounds_of_long_calls : is_fine ? 42 : 14;
  rules.clocked_budget_ns = 0.15e9;
  rules.min_rounds_of_long_calls = rules.min_rounds_of_very_long_calls = 3;
  rules.near_equal = 0;
  rules.doubling_width = 1;
  rules.unstable_width = 1;
  rules.unstable_variance = 1;
  rules.hopeless_ratio = 0;
  return rules;
}

timing_rules launch_bound_timing_rules(double call_ns) {
  // As on a processor, other work on the machine can only make a run slower. It makes most very
  // long runs slower by about as much.
  const std::size_t fastest_of = call_ns >= very_long_call_ns ? 2 : 3;
  const timing_rules of_processors = cpu_timing_rules();
  timing_rules rules = gpu_timing_rules();
  rules.unstable_width = of_processors.unstable_width;
  rules.unstable_variance = of_processors.unstable_variance;
  rules.reverify_agreement = of_processors.reverify_agreement;
  rules.confirming_agreement = 0.1;
  rules.budgets_before_unstable = 8;
  rules.runs_per_batch = static_cast<double>(fastest_of);
  rules.min_runs_per_batch = rules.max_runs_per_batch = fastest_of;
  return rules;
}

timing_rules module_rules(timing_rules of_case, double reference_us) {
  // The judge's clock varies by this much from call to call, and from process to process.
  constexpr double varies_by_us = 3;
  const double share = reference_us > 0 ? varies_by_us / reference_us : 0;
  of_case.new_parameters_one_in = rounds_of_an_instance;
  of_case.target_width += share / 4;
  of_case.doubling_width += share;
  of_case.unstable_width += share;
  of_case.unstable_variance += share;
  of_case.reverify_agreement += share;
  return of_case;
}

timing_rules screening_rules(timing_rules rules) {
  constexpr std::size_t rounds = 6;  // the fewest whose range covers the median with 95 %
  rules.min_rounds = std::min(rules.min_rounds, rounds);
  rules.min_rounds_of_long_calls = std::min(rules.min_rounds_of_long_calls, rounds);
  rules.min_rounds_of_very_long_calls = std::min(rules.min_rounds_of_very_long_calls, rounds);
  rules.rounds_of_full_buckets = rounds;
  rules.target_width = std::max(rules.target_width, 0.03);
  rules.doubling_width = 1;
  rules.unstable_width = rules.unstable_variance = 1;
  rules.near_equal = 0;  // a score of 1 is no claim here
  rules.clocked_budget_ns /= 8;
  rules.batch_ns /= 2;
  // Checks take half of the time. The verification has just checked all contents.
  rules.check_one_in = 3;
  rules.last_checks = 0;
  return rules;
}

bool spreads_too_far(const timing_rules& rules, const ratio_summary& ratio) {
  double variance = 0;
  for (const double bucket : ratio.buckets) {
    const double deviation = bucket / ratio.speedup - 1;
    variance += deviation * deviation / static_cast<double>(ratio.buckets.size());
  }
  return variance > rules.unstable_variance;
}

timing_decision decide(const timing_rules& rules, std::span<const double> log_ratios,
                       double clocked_ns) {
  const timing_decision by_interval = decide_by_interval(rules, log_ratios, clocked_ns);
  const bool needs_full_buckets = by_interval == timing_decision::settled &&
                                  log_ratios.size() < rules.rounds_of_full_buckets &&
                                  spreads_too_far(rules, summarize(log_ratios));
  return needs_full_buckets ? timing_decision::go_on : by_interval;
}

}  // namespace hone
