#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "messages/ids.hpp"

namespace hone {

// The pool's column families and the byte layout of their keys. Numbers are big endian, ids their
// 16 bytes, so that keys sort as what they stand for; every value is a record of the schema named
// here.
enum class family : std::size_t {
  meta,      // "format" -> PoolFormat
  tasks,     // task -> Task
  variants,  // variant -> Variant
  rollouts,  // variant, rollout -> RolloutPlace
  groups,    // group -> RolloutGroup (its variants left out: they have a family of their own)
  progress,  // group -> GroupProgress
  ready,     // sequence (8) -> ReadyGroup: complete, not yet trained on, in the order of completion
  evaluations,  // variant, device type, 0, judge version (4), scope (4) -> Evaluation
  pending,      // like evaluations -> PendingWork
  versions,     // version (8) -> PolicyVersion
  steps,        // version (8) -> TrainingStep
  exemplars,    // see exemplar_index.hpp -> IndexEntry, IndexSlot, BucketStatistics, Islands
};
inline constexpr std::size_t family_count = 12;
inline constexpr std::array<const char*, family_count> family_names = {
    "default", "tasks",       "variants", "rollouts", "groups", "progress",
    "ready",   "evaluations", "pending",  "versions", "steps",  "exemplars"};

// What an evaluation, and the work that leads to it, is known by.
struct evaluation_key {
  variant_id variant;
  std::string device_type;
  std::uint32_t judge = 0;
  std::uint32_t scope = 0;  // 0: the pool's own; others are judged afresh, apart from it
  auto operator<=>(const evaluation_key&) const = default;
};

template <class Tag>
std::string key_of(const id<Tag>& x) {
  const auto bytes = to_bytes(x.high, x.low);
  return {bytes.data(), bytes.size()};
}
std::string key_of(std::uint64_t number);
std::string key_of(const evaluation_key& key);
std::string rollout_key(const variant_id& variant, const rollout_id& rollout);

void append_number(std::string& key, std::uint32_t number);
std::uint32_t read_number(std::string_view key, std::size_t at);

template <class Id>
Id id_from_key(std::string_view key) {
  const auto halves = from_bytes(std::span<const char, 16>(key.data(), 16));
  return Id{halves[0], halves[1]};
}
std::uint64_t number_from_key(std::string_view key);
std::optional<evaluation_key> evaluation_from_key(std::string_view key);

}  // namespace hone
