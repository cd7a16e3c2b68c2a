#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/names.hpp"
#include "storage/inspection.hpp"

namespace hone {

// A group without its texts and tokens: what a report needs of it.
struct compact_group {
  std::uint64_t finished_ms = 0;
  std::uint32_t policy_version = 0;
  std::uint32_t place = 0;          // index into compact_groups::places
  std::uint32_t first_rollout = 0;  // index into compact_groups::rollouts
  std::uint32_t rollouts = 0;       // their number
  std::uint32_t scope = 0;          // of its evaluations
  std::uint32_t turn = 0;           // from 1 on, the prompt shows an attempt to be made better
  double best_shown = 0;            // score of the fastest exemplar that the prompt shows; 0: none
  double attempt_score = 0;         // of the attempt; 0 if it failed
  schema::RolloutGroup::Origin origin = schema::RolloutGroup::Origin::POLICY;
  schema::Draw::Arm arm = schema::Draw::Arm::SAMPLED;
  Stage stage = Stage::SFT;  // of the draw
  schema::GroupProgress::State state = schema::GroupProgress::State::PENDING;
};

// All groups of a pool, in the order in which they were finished. A pool may hold a million
// variants and ten million rollouts, so a rollout takes four bytes and names its variant by an
// index.
struct compact_groups {
  static constexpr std::uint32_t no_variant = (1U << 31U) - 1;
  struct rollout {
    std::uint32_t variant : 31 = no_variant;  // index into `variants`
    std::uint32_t is_copy : 1 = 0;            // it copies a program that the prompt shows
  };
  struct where {
    task_id task;
    std::string device_type;
    auto operator<=>(const where&) const = default;
  };

  std::vector<where> places;
  std::vector<variant_id> variants;  // of the pool, sorted
  std::vector<rollout> rollouts;
  std::vector<compact_group> groups;

  std::span<const rollout> rollouts_of(const compact_group& group) const {
    return std::span(rollouts).subspan(group.first_rollout, group.rollouts);
  }
};

// Returns the index of an id in a sorted list; no_variant if it is not there.
std::uint32_t index_of(const std::vector<variant_id>& variants, const variant_id& id);

// Reads each group once. Throws pool_error.
compact_groups read_compact_groups(const pool_inspector& pool);

}  // namespace hone
