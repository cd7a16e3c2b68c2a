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

std::vector<std::vector<double>> smoothed(const std::vector<std::vector<double>>& rewards,
                                          double limit) {
  std::vector<double> all;
  for (const auto& group : rewards) all.insert(all.end(), group.begin(), group.end());
  const std::vector<double> standardised = clipped(group_advantages(all), limit);
  std::vector<std::vector<double>> result;
  auto next = standardised.begin();
  for (const auto& group : rewards) {
    const auto end = next + static_cast<std::ptrdiff_t>(group.size());
    result.emplace_back(next, end);
    next = end;
  }
  return result;
}

}  // namespace

std::string_view name_of(outlier_rule rule) { return rule_names[static_cast<std::size_t>(rule)]; }

std::optional<outlier_rule> outlier_rule_named(std::string_view name) {
  return value_named<outlier_rule>(rule_names, name);
}

std::vector<double> group_advantages(std::span<const double> rewards, bool scaled) {
  std::vector<double> advantages(rewards.size(), 0);
  if (rewards.empty()) return advantages;
  const auto [least, most] = std::minmax_element(rewards.begin(), rewards.end());
  if (*least == *most) return advantages;  // a rounded mean would make differences of nothing
  const double middle = mean(rewards);
  double variance = 0;
  for (const double r : rewards)
    variance += (r - middle) * (r - middle) / static_cast<double>(rewards.size());
  const double epsilon = relative_epsilon * std::max(std::abs(*least), std::abs(*most));
  const double scale = scaled ? std::sqrt(variance) + epsilon : 1.0;
  for (std::size_t i = 0; i < rewards.size(); ++i) advantages[i] = (rewards[i] - middle) / scale;
  return advantages;
}

std::vector<std::vector<double>> step_advantages(const std::vector<std::vector<double>>& rewards,
                                                 const advantage_options& o) {
  const bool smooths = o.outliers == outlier_rule::smooth;
  std::vector<std::vector<double>> advantages;
  for (const auto& group : smooths ? smoothed(rewards, o.limit) : rewards) {
    std::vector<double> its = group_advantages(group, o.scaled);
    advantages.push_back(smooths ? std::move(its) : recentred(clipped(std::move(its), o.limit)));
  }
  return advantages;
}

}  // namespace hone
