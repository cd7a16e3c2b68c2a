#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "messages/ids.hpp"

namespace hone {

// Lists the pool's column families with the byte layout of their keys. Numbers are big endian and
// ids are their 16 bytes, so that keys sort in the order of the numbers and ids. Every value is a
// record of the schema named here.
enum class family : std::size_t {
  meta,         // "format" -> PoolFormat
  tasks,        // task -> Task
  variants,     // variant -> Variant
  rollouts,     // variant, rollout -> RolloutPlace
  groups,       // group -> RolloutGroup, without its variants: they have a separate family
  progress,     // group -> GroupProgress
  ready,        // sequence (8) -> ReadyGroup, in the order in which the groups became ready
  evaluations,  // variant, device type, 0, judge version (4), scope (4) -> Evaluation
  pending,      // like evaluations -> PendingWork
  versions,     // version (8) -> PolicyVersion
  steps,        // version (8) -> TrainingStep
  exemplars,    // see exemplar_index.hpp -> IndexEntry, IndexSlot, BucketStatistics, Islands
  shown,        // variant, group whose prompt showed it -> nothing
};
inline constexpr std::size_t family_count = 13;
inline constexpr std::array<const char*, family_count> family_names = {
    "default",     "tasks",   "variants", "rollouts", "groups",    "progress", "ready",
    "evaluations", "pending", "versions", "steps",    "exemplars", "shown"};

// Identifies an evaluation and the pending work that leads to it.
struct evaluation_key {
  variant_id variant;
  std::string device_type;
  std::uint32_t judge = 0;
  std::uint32_t scope = 0;  // messages/names.hpp
  auto operator<=>(const evaluation_key&) const = default;
};

// Returns a key, or the start of one, in the layout that `family` describes.
template <class Tag>
std::string key_of(const id<Tag>& x) {
  const auto bytes = to_bytes(x.high, x.low);
  return {bytes.data(), bytes.size()};
}
std::string key_of(std::uint64_t number);
std::string key_of(const evaluation_key& key);
std::string rollout_key(const variant_id& variant, const rollout_id& rollout);
std::string shown_key(const variant_id& variant, const group_id& group);

// Appends a number of 4 bytes to a key.
void append_number(std::string& key, std::uint32_t number);
// Reads the number of 4 bytes at byte offset `at` of a key.
std::uint32_t read_number(std::string_view key, std::size_t at);

// Decodes the id at the start of a key, which must have at least 16 bytes.
template <class Id>
Id id_from_key(std::string_view key) {
  const auto halves = from_bytes(std::span<const char, 16>(key.data(), 16));
  return Id{halves[0], halves[1]};
}
// Decodes the number at the start of a key, which must have at least 8 bytes.
std::uint64_t number_from_key(std::string_view key);
// Returns nullopt if the key is malformed.
std::optional<evaluation_key> evaluation_from_key(std::string_view key);

}  // namespace hone
