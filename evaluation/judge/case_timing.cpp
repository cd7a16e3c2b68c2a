#include "evaluation/judge/case_timing.hpp"

#include <algorithm>
#include <cmath>

namespace hone {

void scale_speedups(double log_factor, case_timing& timing) {
  const double factor = std::exp(log_factor);
  for (double& log_ratio : timing.log_ratios) log_ratio += log_factor;
  for (double& bucket : timing.ratio.buckets) bucket *= factor;
  timing.ratio.speedup *= factor;
  timing.ratio.range = {factor * timing.ratio.range.low, factor * timing.ratio.range.high};
}

void discount_harness(double harness_us, case_timing& timing) {
  if (timing.ratio.speedup <= 1 || timing.reference_us <= 0) return;
  const double left = std::max(1 - harness_us / timing.reference_us, 1 / timing.ratio.speedup);
  const double high = timing.ratio.range.high;
  scale_speedups(std::log(left), timing);
  timing.ratio.range.high = high;
}

std::string print_number(double value, std::size_t decimals) {
  const std::string digits = std::to_string(value);
  return digits.substr(0, digits.find('.') + 1 + decimals);
}

std::optional<program_failure> find_impossible_time(double call_us, double floor_us) {
  if (call_us >= floor_us) return std::nullopt;
  return program_failure{Outcome::CHEATING, "impossible_time",
                         "a call takes " + print_number(call_us, 3) +
                             " us, writing its outputs alone needs " + print_number(floor_us, 3) +
                             " us"};
}

}  // namespace hone
