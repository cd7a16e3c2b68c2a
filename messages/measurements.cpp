#include "messages/measurements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "messages/names.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

template <class Pick>
double geometric_mean(const schema::Measurement::Reader& m, Pick pick) {
  double sum = 0;
  for (const auto timing : m.getCases()) sum += std::log(pick(timing));
  return m.getCases().size() > 0 ? std::exp(sum / m.getCases().size()) : 0;
}

}  // namespace

bool has_score(const schema::Evaluation::Reader& e) {
  return e.getOutcome() == Outcome::OK && e.getScore() > 0;
}

double lower_median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

headline headline_of(const schema::Evaluation::Reader& e) {
  headline found;
  if (!has_score(e)) return found;
  std::vector<double> scores;
  for (const auto m : e.getMeasurements()) {
    if (m.getOutcome() == Outcome::OK) scores.push_back(m.getScore());
  }
  found.speedup = found.lowest = found.highest = e.getScore();
  found.measurements = scores.size();
  if (scores.empty()) return found;
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  found.lowest = *low;
  found.highest = *high;
  found.later = scores.size() - 1;
  found.later_speedup = lower_median({scores.begin() + 1, scores.end()});
  return found;
}

schema::Measurement::Reader measurement_of_score(const schema::Evaluation::Reader& e) {
  const auto measurements = e.getMeasurements();
  if (measurements.size() == 0) return {};
  schema::Measurement::Reader nearest = measurements[measurements.size() - 1];
  if (e.getOutcome() != Outcome::OK) return nearest;
  double distance = std::numeric_limits<double>::infinity();
  for (const auto m : measurements) {
    const double off = std::abs(m.getScore() - e.getScore());
    if (m.getOutcome() != Outcome::OK || off > distance) continue;
    nearest = m;  // the last of equally near ones
    distance = off;
  }
  return nearest;
}

double reference_us(const schema::Measurement::Reader& m) {
  return geometric_mean(m, [](const auto& c) { return c.getReferenceUs(); });
}
double candidate_us(const schema::Measurement::Reader& m) {
  return geometric_mean(m, [](const auto& c) { return c.getCandidateUs(); });
}

std::map<std::string, double> baselines_us(const schema::Measurement::Reader& m) {
  std::map<std::string, std::vector<double>> timed;
  for (const auto c : m.getCases()) {
    for (const auto baseline : c.getBaselines()) {
      if (baseline.getUs() > 0)
        timed[std::string(view(baseline.getName()))].push_back(std::log(baseline.getUs()));
    }
  }
  std::map<std::string, double> means;
  for (const auto& [name, logs] : timed) {
    if (logs.size() == m.getCases().size())
      means[name] = std::exp(std::accumulate(logs.begin(), logs.end(), 0.0) /
                             static_cast<double>(logs.size()));
  }
  return means;
}

std::map<std::string, std::string> missing_baselines(const schema::Measurement::Reader& m) {
  std::map<std::string, std::string> reasons;
  for (const auto c : m.getCases()) {
    for (const auto missing : c.getMissingBaselines())
      reasons.emplace(view(missing.getName()), view(missing.getWhy()));
  }
  return reasons;
}

std::map<std::string, double> speedups_over_baselines(const schema::Evaluation::Reader& e) {
  std::map<std::string, double> speedups;
  if (e.getOutcome() != Outcome::OK) return speedups;
  const auto times = baselines_us(measurement_of_score(e));
  const auto eager = times.find("eager");
  if (eager == times.end()) return speedups;
  for (const auto& [name, us] : times) speedups[name] = e.getScore() * us / eager->second;
  return speedups;
}

}  // namespace hone
