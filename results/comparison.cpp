#include "results/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace hone {
namespace {

std::vector<double> logs_of(const std::vector<compared_sample>& samples) {
  std::vector<double> logs;
  for (const compared_sample& s : samples) logs.push_back(log_speedup(s.is_ok, s.score));
  return logs;
}

double resampled_mean(const std::vector<double>& values, std::mt19937_64& random) {
  std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[pick(random)];
  return sum / static_cast<double>(values.size());
}

}  // namespace

double log_speedup(bool is_ok, double score) {
  return std::log(is_ok ? std::max(score, min_speedup) : failed_speedup);
}

policy_summary summarize_samples(const std::vector<compared_sample>& samples) {
  policy_summary sums;
  if (samples.empty()) return sums;
  sums.log_best = std::log(failed_speedup);
  double ok = 0;
  for (const compared_sample& s : samples) {
    const double log = log_speedup(s.is_ok, s.score);
    ok += s.is_ok ? 1 : 0;
    sums.log_of_ok += s.is_ok ? log : 0;
    sums.log_score += log;
    sums.log_best = std::max(sums.log_best, log);
    sums.new_share += s.is_ok && s.is_new ? 1 : 0;
    sums.copy_share += s.is_copy ? 1 : 0;
  }
  const auto n = static_cast<double>(samples.size());
  sums.ok = ok / n;
  sums.solved = ok > 0 ? 1 : 0;
  sums.log_of_ok = ok > 0 ? sums.log_of_ok / ok : 0;
  sums.log_score /= n;
  sums.new_share /= n;
  sums.copy_share /= n;
  return sums;
}

policy_summary mean_of(const std::vector<policy_summary>& tasks) {
  policy_summary mean;
  const auto n = static_cast<double>(std::max<std::size_t>(1, tasks.size()));
  for (const policy_summary& t : tasks) {
    mean.ok += t.ok / n;
    mean.log_of_ok += t.log_of_ok;
    mean.solved += t.solved / n;
    mean.log_score += t.log_score / n;
    mean.log_best += t.log_best / n;
    mean.new_share += t.new_share / n;
    mean.copy_share += t.copy_share / n;
  }
  mean.log_of_ok = mean.solved > 0 ? mean.log_of_ok / (mean.solved * n) : 0;
  return mean;
}

comparison_result compare_policies(const std::vector<compared_task>& tasks, std::size_t resamples,
                                   std::uint64_t seed) {
  comparison_result result;
  std::vector<std::pair<std::vector<double>, std::vector<double>>> logs;
  std::vector<policy_summary> before;
  std::vector<policy_summary> after;
  for (const compared_task& t : tasks) {
    if (t.before.empty() || t.after.empty()) continue;
    logs.emplace_back(logs_of(t.before), logs_of(t.after));
    before.push_back(summarize_samples(t.before));
    after.push_back(summarize_samples(t.after));
    result.tasks.push_back({t.task, before.back(), after.back()});
  }
  if (logs.empty()) return result;
  result.before = mean_of(before);
  result.after = mean_of(after);
  result.difference = result.after.log_score - result.before.log_score;

  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> pick_task(0, logs.size() - 1);
  std::vector<double> differences;
  for (std::size_t r = 0; r < resamples; ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const auto& [its_before, its_after] = logs[pick_task(random)];
      sum += resampled_mean(its_after, random) - resampled_mean(its_before, random);
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

std::vector<compared_sample> without_copies(std::vector<compared_sample> samples) {
  std::erase_if(samples, [](const compared_sample& s) { return s.is_copy; });
  return samples;
}

std::vector<compared_task> without_copies(std::vector<compared_task> tasks) {
  for (compared_task& t : tasks) {
    t.before = without_copies(std::move(t.before));
    t.after = without_copies(std::move(t.after));
  }
  return tasks;
}

}  // namespace hone
