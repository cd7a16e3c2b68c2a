#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/names.hpp"
#include "storage/inspection.hpp"

namespace hone {

// A group without its texts and tokens: what a report needs of it. A pool may hold ten million
// rollouts, so that a rollout must take few bytes.
struct compact_group {
  struct rollout {
    variant_id variant;
    bool is_copy = false;  // it copies a program that the prompt shows
  };
  group_id id;
  std::uint64_t finished_ms = 0;
  std::uint64_t policy_version = 0;
  std::uint32_t place = 0;  // index into compact_groups::places
  schema::RolloutGroup::Origin origin = schema::RolloutGroup::Origin::POLICY;
  schema::Draw::Arm arm = schema::Draw::Arm::SAMPLED;
  Stage stage = Stage::SFT;  // of the draw
  std::uint32_t scope = 0;   // of its evaluations
  schema::GroupProgress::State state = schema::GroupProgress::State::PENDING;
  double best_shown = 0;     // score of the fastest exemplar that the prompt shows; 0: none
  std::uint32_t turn = 0;    // from 1 on, the prompt shows an attempt to be made better
  double attempt_score = 0;  // of that attempt; 0 if it failed
  std::vector<rollout> rollouts;
};

// All groups of a pool, in the order in which they were finished. Reads each group once.
struct compact_groups {
  struct where {
    task_id task;
    std::string device_type;
    auto operator<=>(const where&) const = default;
  };
  std::vector<where> places;
  std::vector<compact_group> groups;
};
// Throws pool_error.
compact_groups read_compact_groups(const pool_inspector& pool);

}  // namespace hone
