#include "launch/run/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace hone {
namespace {

// Returns the score as which a failed sample of the task counts.
double failed_score(const compared_task& t) {
  double lowest = 1;
  for (const auto* samples : {&t.before, &t.after}) {
    for (const compared_sample& s : *samples) {
      if (s.ok) lowest = std::min(lowest, s.score);
    }
  }
  return std::max(lowest, 1e-6);
}

std::vector<double> logs_of(const std::vector<compared_sample>& samples, double failed) {
  std::vector<double> logs;
  for (const compared_sample& s : samples)
    logs.push_back(std::log(s.ok ? std::max(s.score, 1e-6) : failed));
  return logs;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double ok_share(const std::vector<compared_sample>& samples) {
  const auto ok =
      std::count_if(samples.begin(), samples.end(), [](const compared_sample& s) { return s.ok; });
  return samples.empty() ? 0 : static_cast<double>(ok) / static_cast<double>(samples.size());
}

}  // namespace

comparison_result compare_policies(const std::vector<compared_task>& tasks, std::size_t resamples,
                                   std::uint64_t seed) {
  comparison_result result;
  std::vector<std::pair<std::vector<double>, std::vector<double>>> logs;
  for (const compared_task& t : tasks) {
    if (t.before.empty() || t.after.empty()) continue;
    const double failed = failed_score(t);
    logs.emplace_back(logs_of(t.before, failed), logs_of(t.after, failed));
    result.tasks.push_back({t.task, failed, mean(logs.back().first), mean(logs.back().second),
                            ok_share(t.before), ok_share(t.after)});
    result.before += result.tasks.back().before;
    result.after += result.tasks.back().after;
    result.before_ok += result.tasks.back().before_ok;
    result.after_ok += result.tasks.back().after_ok;
  }
  if (logs.empty()) return result;
  result.before /= static_cast<double>(logs.size());
  result.after /= static_cast<double>(logs.size());
  result.before_ok /= static_cast<double>(logs.size());
  result.after_ok /= static_cast<double>(logs.size());
  result.difference = result.after - result.before;

  std::mt19937_64 random(seed);
  const auto resampled_mean = [&](const std::vector<double>& values) {
    std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[pick(random)];
    return sum / static_cast<double>(values.size());
  };
  std::uniform_int_distribution<std::size_t> pick_task(0, logs.size() - 1);
  std::vector<double> differences;
  for (std::size_t r = 0; r < resamples; ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const auto& [before, after] = logs[pick_task(random)];
      sum += resampled_mean(after) - resampled_mean(before);
    }
    differences.push_back(sum / static_cast<double>(logs.size()));
  }
  std::sort(differences.begin(), differences.end());
  if (!differences.empty()) {
    result.low =
        differences[static_cast<std::size_t>(0.025 * static_cast<double>(differences.size()))];
    result.high = differences[std::min(
        differences.size() - 1,
        static_cast<std::size_t>(0.975 * static_cast<double>(differences.size())))];
  }
  return result;
}

}  // namespace hone
