#include "evaluation/judge/case_timing.hpp"

#include <cmath>

namespace hone {

void scale_speedups(double log_factor, case_timing& timing) {
  const double factor = std::exp(log_factor);
  for (double& log_ratio : timing.log_ratios) log_ratio += log_factor;
  for (double& bucket : timing.ratio.buckets) bucket *= factor;
  timing.ratio.speedup *= factor;
  timing.ratio.range = {factor * timing.ratio.range.low, factor * timing.ratio.range.high};
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
