#include "policy/training/rewards.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "messages/value_names.hpp"

namespace hone {
namespace {

// Least speed-up that counts as faster.
constexpr double faster = 1.05;

constexpr double min_relative = 0.2;  // reward of the slowest program that works

constexpr std::array<std::string_view, 5> shape_names = {"speedup", "log", "capped", "tiers",
                                                         "relative"};
constexpr std::array<std::string_view, 2> baseline_names = {"eager", "best"};
constexpr std::array<std::string_view, 2> copy_rule_names = {"paid", "as_neighbours"};

double shaped(double speedup, double over_best, double best_shown, const reward_options& o) {
  switch (o.shape) {
    case reward_shape::speedup:
      return speedup;
    case reward_shape::log:
      return std::log1p(speedup);
    case reward_shape::capped:
      return std::min(speedup, o.cap);
    case reward_shape::tiers:
      return 1 + (speedup >= faster ? 1 : 0) + (speedup >= faster && over_best >= faster ? 1 : 0);
    case reward_shape::relative:
      return std::max(min_relative, 1 + std::log(speedup / (best_shown > 0 ? best_shown : 1)) / 2);
  }
  return 0;
}

double reward_of(const judged_completion& c, const reward_options& o) {
  if (!c.is_ok) return 0;
  // Exemplars' scores are over the eager reference.
  const bool is_against_best = o.baseline == reward_baseline::best &&
                               o.shape != reward_shape::tiers && o.shape != reward_shape::relative;
  return shaped(is_against_best ? c.over_best_baseline : c.speedup, c.over_best_baseline,
                c.best_shown, o);
}

// Returns the most that a copy of an exemplar is paid in this group.
double max_of_a_copy(const std::vector<judged_completion>& group,
                     const std::vector<double>& rewards, const reward_options& o) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!group[i].is_ok || group[i].copies_exemplar) continue;
    sum += rewards[i];
    ++count;
  }
  return count > 0 ? sum / count : shaped(1, 1, group.empty() ? 0 : group.front().best_shown, o);
}

}  // namespace

std::string_view name_of(reward_shape shape) {
  return shape_names[static_cast<std::size_t>(shape)];
}
std::string_view name_of(reward_baseline baseline) {
  return baseline_names[static_cast<std::size_t>(baseline)];
}
std::string_view name_of(copy_rule rule) { return copy_rule_names[static_cast<std::size_t>(rule)]; }

std::optional<reward_shape> reward_shape_named(std::string_view name) {
  return value_named<reward_shape>(shape_names, name);
}
std::optional<reward_baseline> reward_baseline_named(std::string_view name) {
  return value_named<reward_baseline>(baseline_names, name);
}
std::optional<copy_rule> copy_rule_named(std::string_view name) {
  return value_named<copy_rule>(copy_rule_names, name);
}

bool needs_baselines(const reward_options& o) {
  return o.shape == reward_shape::tiers || o.baseline == reward_baseline::best;
}

std::vector<double> group_rewards(const std::vector<judged_completion>& group,
                                  const reward_options& o) {
  std::vector<double> rewards;
  for (const judged_completion& one : group) rewards.push_back(reward_of(one, o));
  if (o.copies == copy_rule::paid) return rewards;
  const double most = max_of_a_copy(group, rewards, o);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i].copies_exemplar) rewards[i] = std::min(rewards[i], most);
  }
  return rewards;
}

double reward_noise(const std::vector<judged_completion>& group, const reward_options& o,
                    double noise) {
  double sum = 0;
  double count = 0;
  for (judged_completion one : group) {
    if (!one.is_ok) continue;
    const double reward = reward_of(one, o);
    one.speedup *= 1 + noise;
    one.over_best_baseline *= 1 + noise;
    sum += std::abs(reward_of(one, o) - reward);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace hone
