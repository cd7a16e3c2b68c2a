#include "results/scored_sums.hpp"

#include "results/comparison.hpp"

namespace hone {

void group_sums::add(Outcome outcome, double score) {
  ++outcomes[outcome];
  untimed += outcome == Outcome::OK && score == 0 ? 1 : 0;
  if (is_inconclusive(outcome)) return;
  ++conclusive;
  log += log_speedup(outcome == Outcome::OK, score);
}

void scored_sums::add(const place& where, const group_sums& sums) {
  for (const auto& [outcome, count] : sums.outcomes) all.add(outcome, count);
  untimed += sums.untimed;
  if (sums.conclusive == 0) return;
  auto& [samples, log] = logs[where];
  samples += sums.conclusive;
  log += sums.log;
}

std::optional<double> scored_sums::mean_log() const {
  if (untimed > 0) return std::nullopt;
  double sum = 0;
  for (const auto& [where, its] : logs) sum += its.second / its.first;
  return logs.empty() ? 0 : sum / static_cast<double>(logs.size());
}

}  // namespace hone
