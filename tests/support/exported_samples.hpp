#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace hone::testing_support {

// A sample with its evaluation, as `hone pool export` has it.
struct exported_sample {
  std::string stage;
  std::pair<std::uint64_t, std::string> group;  // by which groups are in the order of time
  std::uint64_t version = 0;
  std::string place;
  std::string task;
  std::string variant;
  std::string arm;
  std::map<std::string, double> shown;  // exemplars with their scores
  bool is_ok = false;
  bool is_conclusive = true;
  double score = 0;

  double log_score() const { return std::log(is_ok ? score : 0.25); }
};

// Returns the samples of exported variants, group by group in the order of time.
inline std::vector<exported_sample> exported_samples(const std::vector<nlohmann::json>& variants) {
  std::vector<exported_sample> all;
  for (const nlohmann::json& variant : variants) {
    for (const nlohmann::json& r : variant["rollouts"]) {
      for (const nlohmann::json& e : variant["evaluations"]) {
        if (e["device_type"] != r["device_type"] ||
            e["scope"] != (r["origin"] == "comparison" ? "comparison" : "run"))
          continue;
        exported_sample s;
        s.stage = r["origin"] == "corpus" ? "corpus" : std::string(r["stage"]);
        s.group = {r["written_ms"], r["group"]};
        s.version = r["policy_version"];
        s.task = e["task"];
        s.place = s.task + " on " + std::string(e["device_type"]);
        s.variant = variant["variant"];
        s.arm = r["arm"];
        for (const nlohmann::json& one : r["exemplars"]) s.shown[one["variant"]] = one["speedup"];
        s.is_ok = e["outcome"] == "ok";
        s.is_conclusive = e["outcome"] != "unstable" && e["outcome"] != "infrastructure";
        const bool is_timed = e["speedup"].is_number();
        s.score = s.is_ok && is_timed ? e["speedup"].get<double>() : 0;
        all.push_back(std::move(s));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.group < b.group; });
  return all;
}

// Sums over samples, and their logs by place.
struct sums {
  double samples = 0;
  double ok = 0;
  std::map<std::string, std::pair<double, double>> logs;
  void add(const exported_sample& s) {
    ++samples;
    ok += s.is_ok ? 1 : 0;
    if (!s.is_conclusive) return;
    ++logs[s.place].first;
    logs[s.place].second += s.log_score();
  }
  double mean_log() const {
    double sum = 0;
    for (const auto& [place, its] : logs) sum += its.second / its.first;
    return logs.empty() ? 0 : sum / static_cast<double>(logs.size());
  }
};

}  // namespace hone::testing_support
