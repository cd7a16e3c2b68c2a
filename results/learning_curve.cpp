#include "results/learning_curve.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <random>

namespace hone {
namespace {

constexpr std::size_t resamples = 1000;

void add(scored_sums& to, const scored_sums& from) {
  to.all.samples += from.all.samples;
  to.all.ok += from.all.ok;
  to.untimed += from.untimed;
  for (const auto& [where, sums] : from.logs) {
    auto& [samples, log] = to.logs[where];
    samples += sums.first;
    log += sums.second;
  }
}

void set_interval(learning_point& point, const scored_sums& sums) {
  point.low = point.high = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> means;
  for (const auto& [where, sum] : sums.logs) means.push_back(sum.second / sum.first);
  if (means.size() < 2) return;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::size_t> any(0, means.size() - 1);
  std::vector<double> found(resamples);
  for (double& mean : found) {
    double sum = 0;
    for (std::size_t i = 0; i < means.size(); ++i) sum += means[any(random)];
    mean = sum / static_cast<double>(means.size());
  }
  std::sort(found.begin(), found.end());
  point.low = found[resamples / 40];
  point.high = found[resamples - 1 - resamples / 40];
}

}  // namespace

std::vector<learning_point> learning_curve(const run_results& of, std::size_t max_points) {
  constexpr std::array learning_stages = {"self_supervised", "contrastive"};
  std::size_t versions = 0;
  for (const char* stage : learning_stages) {
    if (const auto found = of.stages.find(stage); found != of.stages.end())
      versions += found->second.by_version.size();
  }
  const std::size_t merged = std::max<std::size_t>(1, (versions + max_points - 1) / max_points);
  std::vector<learning_point> curve;
  for (const char* stage : learning_stages) {
    const auto found = of.stages.find(stage);
    if (found == of.stages.end()) continue;
    const auto& by_version = found->second.by_version;
    for (auto at = by_version.begin(); at != by_version.end();) {
      learning_point point;
      point.stage = stage;
      point.first_version = at->first;
      scored_sums sums;
      for (std::size_t i = 0; i < merged && at != by_version.end(); ++i, ++at) {
        point.last_version = at->first;
        add(sums, at->second.all);
        for (const auto& [outcome, count] : at->second.outcomes) point.outcomes[outcome] += count;
      }
      point.samples = sums.all.samples;
      point.mean_log = sums.mean_log().value_or(0);
      set_interval(point, sums);
      curve.push_back(std::move(point));
    }
  }
  return curve;
}

}  // namespace hone
