#include "policy/training/advantages.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "messages/value_names.hpp"

namespace hone {
namespace {

constexpr double relative_epsilon = 1e-6;

constexpr std::array<std::string_view, 2> rule_names = {"recentre", "smooth"};

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> clipped(std::vector<double> values, double limit) {
  for (double& x : values) x = std::clamp(x, -limit, limit);
  return values;
}

std::vector<double> recentred(std::vector<double> values) {
  if (values.empty()) return values;
  const double middle = mean(values);
  for (double& x : values) x -= middle;
  return values;
}

// Returns the population standard deviation.
double deviation(std::span<const double> values) {
  const double middle = mean(values);
  double variance = 0;
  for (const double x : values)
    variance += (x - middle) * (x - middle) / static_cast<double>(values.size());
  return std::sqrt(variance);
}

std::vector<rewarded_group> smoothed(const std::vector<rewarded_group>& groups, double limit) {
  std::vector<double> all;
  for (const auto& [rewards, noise] : groups) all.insert(all.end(), rewards.begin(), rewards.end());
  const double scale = all.empty() ? 0 : deviation(all);
  const std::vector<double> standardized = clipped(group_advantages(all), limit);
  std::vector<rewarded_group> result;
  auto next = standardized.begin();
  for (const auto& [rewards, noise] : groups) {
    const auto end = next + static_cast<std::ptrdiff_t>(rewards.size());
    result.push_back({{next, end}, scale > 0 ? noise / scale : 0});
    next = end;
  }
  return result;
}

}  // namespace

std::string_view name_of(outlier_rule rule) { return rule_names[static_cast<std::size_t>(rule)]; }

std::optional<outlier_rule> outlier_rule_named(std::string_view name) {
  return value_named<outlier_rule>(rule_names, name);
}

std::vector<double> group_advantages(std::span<const double> rewards, bool scaled, double noise) {
  std::vector<double> advantages(rewards.size(), 0);
  if (rewards.empty()) return advantages;
  const auto [least, most] = std::minmax_element(rewards.begin(), rewards.end());
  if (*least == *most) return advantages;  // a rounded mean would make differences of nothing
  const double middle = mean(rewards);
  const double epsilon = relative_epsilon * std::max(std::abs(*least), std::abs(*most));
  const double scale = scaled ? std::max(deviation(rewards), noise) + epsilon : 1.0;
  for (std::size_t i = 0; i < rewards.size(); ++i) advantages[i] = (rewards[i] - middle) / scale;
  return advantages;
}

std::vector<std::vector<double>> step_advantages(const std::vector<rewarded_group>& groups,
                                                 const advantage_options& o) {
  const bool smooths = o.outliers == outlier_rule::smooth;
  std::vector<std::vector<double>> advantages;
  for (const auto& [rewards, noise] : smooths ? smoothed(groups, o.limit) : groups) {
    std::vector<double> its = group_advantages(rewards, o.scaled, noise);
    advantages.push_back(smooths ? std::move(its) : recentred(clipped(std::move(its), o.limit)));
  }
  return advantages;
}

}  // namespace hone
