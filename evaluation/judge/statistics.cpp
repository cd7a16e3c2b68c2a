#include "evaluation/judge/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace hone {

double median(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("the median of nothing");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

interval median_interval(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  if (n == 0) throw std::invalid_argument("the interval of nothing");
  // Finds the largest k with P(fewer than k heads of n fair coins) <= 2.5 %. Then [x(k), x(n + 1 -
  // k)] covers the median with a probability of at least 95 %.
  // Logarithms, because 0.5 to the power of n is zero for a double from n = 1,075 on.
  double tail = 0;
  double log_probability = static_cast<double>(n) * std::log(0.5);
  std::size_t k = 0;
  while (k < n / 2 && tail + std::exp(log_probability) <= 0.025) {
    tail += std::exp(log_probability);
    ++k;
    log_probability += std::log(static_cast<double>(n - k + 1) / static_cast<double>(k));
  }
  k = std::max<std::size_t>(k, 1);
  return {sorted[k - 1], sorted[n - k]};
}

double round_toward_one(double score) {
  const double hundredths = score * 100;
  if (std::abs(hundredths - std::round(hundredths)) < 1e-6) return std::round(hundredths) / 100;
  return (score > 1 ? std::floor(hundredths) : std::ceil(hundredths)) / 100;
}

std::vector<double> bucket_medians(std::span<const double> values) {
  std::array<std::vector<double>, bucket_count> buckets;
  for (std::size_t i = 0; i < values.size(); ++i) buckets[i % bucket_count].push_back(values[i]);
  std::vector<double> medians;
  for (const auto& bucket : buckets) {
    if (!bucket.empty()) medians.push_back(median(bucket));
  }
  return medians;
}

double relative_half_width(const interval& range) {
  return (range.high - range.low) / (range.high + range.low);
}

ratio_summary summarize(std::span<const double> log_ratios) {
  ratio_summary summary;
  for (const double log_ratio : bucket_medians(log_ratios))
    summary.buckets.push_back(std::exp(log_ratio));
  summary.speedup = median(summary.buckets);
  const interval logs = median_interval(log_ratios);
  summary.range = {std::exp(logs.low), std::exp(logs.high)};
  return summary;
}

scored_ratio combine(std::span<const ratio_summary> cases) {
  double raw = 0;
  double low = 0;
  double high = 0;
  for (const ratio_summary& one : cases) {
    raw += std::log(one.speedup);
    low += std::log(one.range.low);
    high += std::log(one.range.high);
  }
  const auto n = static_cast<double>(cases.size());
  scored_ratio scored;
  scored.raw = std::exp(raw / n);
  scored.range = {std::exp(low / n), std::exp(high / n)};
  scored.score =
      scored.range.low <= 1 && scored.range.high >= 1 ? 1.0 : round_toward_one(scored.raw);
  scored.range.low = std::min(scored.range.low, scored.score);
  scored.range.high = std::max(scored.range.high, scored.score);
  return scored;
}

}  // namespace hone
