#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "actors/telemetry.hpp"

namespace hone {

// Counts of a node since its process started, for counters that never decrease. A snapshot alone
// has the counts of the actors that live: an actor restarts after a failure, and those of a joined
// node when it joins again, under a new telemetry actor. Not thread-safe.
class metric_totals {
 public:
  struct counts {
    double processed = 0;
    double failed = 0;
    double busy_seconds = 0;
    double tokens = 0;  // that generators wrote and the learner was trained on
    double restarts = 0;
  };

  // Takes in the node's next snapshot.
  void take(const node_snapshot& snapshot);

  // Returns the sums over this node's actors by room and device type, which is empty for actors
  // that work for no single type. Actors of joined nodes are left out.
  std::map<std::pair<std::string, std::string>, counts> by_room() const;
  // Samples by stage and outcome. A snapshot has those of the current stage.
  const std::map<std::pair<std::string, std::string>, double>& samples() const { return samples_; }

 private:
  struct actor {
    std::string room;
    std::string device_type;
    std::uint64_t started_us = 0;
    counts earlier;  // of the actors that had the name before
    counts latest;   // as last reported
  };

  void take(const std::string& name, const schema::ActorStatus::Reader& status,
            std::uint32_t restarts);

  std::map<std::string, actor> actors_;  // by name
  std::map<std::pair<std::string, std::string>, double> samples_;
};

}  // namespace hone
