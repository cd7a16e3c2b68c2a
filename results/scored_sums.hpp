#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "messages/ids.hpp"
#include "messages/names.hpp"

namespace hone {

// A task on a type of device.
struct place {
  task_id task;
  std::string device_type;
  auto operator<=>(const place&) const = default;
};

// Sums over samples.
struct sample_sums {
  double samples = 0;
  double ok = 0;

  void add(Outcome outcome, double count = 1) {
    samples += count;
    ok += outcome == Outcome::OK ? count : 0;
  }
  double share_ok() const { return samples > 0 ? ok / samples : 0; }
};

// Sums over the samples of a group. Inconclusive samples have no log speed-up.
struct group_sums {
  std::map<Outcome, double> outcomes;  // numbers of samples
  double untimed = 0;                  // samples that are ok without a score
  double conclusive = 0;               // samples
  double log = 0;                      // sum of their log speed-ups

  void add(Outcome outcome, double score);
};

// Samples with their log speed-ups, by task and type of device.
struct scored_sums {
  sample_sums all;
  std::map<place, std::pair<double, double>> logs;  // number of samples, sum of log speed-ups
  double untimed = 0;                               // samples that are ok without a score

  void add(const place& where, const group_sums& sums);
  // Returns the mean over places of the mean log speed-up, where samples that are not ok count as
  // failed_speedup; nullopt if samples that are ok have no score.
  std::optional<double> mean_log() const;
};

}  // namespace hone
