#include "evaluation/judge/process_bias.hpp"

#include <algorithm>
#include <cmath>

#include "evaluation/judge/sampled_side.hpp"

namespace hone {
namespace {

// Time by which the place of a kernel's code in memory may lengthen or shorten the kernel. The
// place is random and stays the same while a module is loaded. Its effect on
// the reference is part of the bias. Its effect on the candidate is unknown, so no interval is
// narrower than this.
constexpr double code_place_us = 0.1;

// Half-width, in log ratio, below which two loads of one program differ in the host's time for a
// call. It is the least uncertainty if the reference is launch-bound.
constexpr double loads_differ_by = 0.04;

// Half-width, in log ratio, of what equal programs of very long calls have differed by between two
// processes: up to 1.2 % on an H200.
constexpr double processes_differ_by = 0.015;

// Rounds below which the interval covers less than 95 %, and the log ratio that counts even so.
constexpr std::size_t min_rounds_of_a_comparison = 6;
constexpr double certain_log_ratio = 0.05;

}  // namespace

process_bias bias_of(const case_timing& equal_programs) {
  const interval& range = equal_programs.ratio.range;
  const double log_ratio = median(equal_programs.log_ratios);
  const double half_width = std::log(range.high / range.low) / 2;
  if (equal_programs.reference_us * 1e3 < long_call_ns) return {log_ratio, half_width};
  const bool has_least_rounds = equal_programs.log_ratios.size() >= min_rounds_of_a_comparison;
  const bool is_significant = (range.low > 1 || range.high < 1) &&
                              (has_least_rounds || std::abs(log_ratio) > certain_log_ratio);
  if (is_significant) return {log_ratio, half_width};
  return {0, has_least_rounds ? half_width : std::max(half_width, processes_differ_by)};
}

process_bias unknown_bias() { return {0, processes_differ_by}; }

process_bias beside_launch_bound(process_bias bias) {
  bias.half_width = std::max(bias.half_width, loads_differ_by);
  return bias;
}

process_bias on_a_busy_host(const process_bias& bias) {
  return {std::max(0.0, bias.log_ratio), std::max(bias.half_width, std::abs(bias.log_ratio))};
}

timing_rules rules_between(const process_bias& bias, double reference_us, timing_rules rules) {
  rules.equal_log_ratio = bias.log_ratio;
  rules.equal_half_width = bias.half_width + (reference_us > 0 ? code_place_us / reference_us : 0);
  return rules;
}

double as_clocked(const process_bias& bias, double reference_us) {
  return reference_us * std::exp(bias.log_ratio);
}

void subtract_bias(const process_bias& bias, case_timing& timing) {
  timing.reference_us *= std::exp(-bias.log_ratio);
  scale_speedups(-bias.log_ratio, timing);
  const interval& range = timing.ratio.range;
  const double middle = std::sqrt(range.low * range.high);
  const double half_width = std::hypot(std::log(range.high / range.low) / 2, bias.half_width) +
                            code_place_us / timing.candidate_us;
  timing.ratio.range = {middle * std::exp(-half_width), middle * std::exp(half_width)};
}

}  // namespace hone
