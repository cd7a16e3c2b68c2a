#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "messages/measurements.hpp"
#include "messages/schema/variant.capnp.h"
#include "storage/inspection.hpp"

namespace hone {

// Print variants of a pool for `hone pool`, as text on standard output or as JSON. All functions
// throw pool_error.

// Returns the first ten digits of an id.
template <class Id>
std::string short_id(const Id& id) {
  return to_string(id).substr(0, 10);
}

// Returns the task's name, or its short id if the pool does not have the task.
std::string name_or_id(const pool_inspector& pool, const task_id& id);

// Returns the blocks of a variant as a document has them. Settings that this version cannot read
// come first, as they are.
std::string printed_blocks(const schema::Variant::Reader& v);

// Returns a variant's score on each type of device, as "  2.50x on h100", with the outcome instead
// of a score that it does not have.
std::string scores_of(const pool_inspector& pool, const variant_id& id);

// Returns the newest document that holds the variant and is still in the pool (pool.keep_texts).
std::optional<std::string> document_of(const pool_inspector& pool, const variant_id& id);

// A rollout with its group.
struct placed_rollout {
  pool_inspector::written_as where;
  record<schema::RolloutGroup> group;
  schema::Rollout::Reader rollout() const { return group->getRollouts()[where.index]; }
};
// Returns the rollout in its group, or nullopt if the pool has the group no longer.
std::optional<placed_rollout> find_rollout(const pool_inspector& pool,
                                           const pool_inspector::written_as& where);
// Returns the earliest rollout that wrote a variant, or nullopt if none is left.
std::optional<placed_rollout> first_rollout(const pool_inspector& pool, const variant_id& id);

// The rollouts that an answer about one variant has: its newest ones.
inline constexpr std::size_t max_rollouts_shown = 20;

// Return or print a variant with its code, its evaluations and its newest rollouts, `max_rollouts`
// at most. With `has_tokens`, each rollout has its tokens, their log-probabilities and the versions
// of the policy that wrote them. The text has only the number of rollouts, and the document of one.
nlohmann::ordered_json variant_to_json(const pool_inspector& pool, const schema::Variant::Reader& v,
                                       std::size_t max_rollouts = max_rollouts_shown,
                                       bool has_tokens = false);
void print_variant(const pool_inspector& pool, const variant_id& id,
                   const schema::Variant::Reader& v);

// Return or print two variants with the unified difference of their code.
nlohmann::ordered_json difference_to_json(const pool_inspector& pool,
                                          const schema::Variant::Reader& from,
                                          const schema::Variant::Reader& to);
void print_difference(const pool_inspector& pool, const schema::Variant::Reader& from,
                      const schema::Variant::Reader& to);
std::string unified_difference(const schema::Variant::Reader& from,
                               const schema::Variant::Reader& to);

// Returns the reference of a task as a variant. Throws pool_error if the pool has no such task.
record<schema::Variant> reference_of(const pool_inspector& pool, const task_id& id);

// Return or print a variant with its ancestors: the exemplars that its prompts showed, their
// exemplars, and so on. Each variant appears in full once; the JSON ends after `max_lineage`
// variants.
inline constexpr std::size_t max_lineage = 200;
nlohmann::ordered_json lineage_to_json(const pool_inspector& pool, const variant_id& first);
void print_lineage(const pool_inspector& pool, const variant_id& first);

// A variant that a prompt led to which showed another one.
struct descendant {
  variant_id variant;
  group_id group;                          // the first such group
  std::map<std::string, headline> scores;  // by device type, where it has a score in the run
};
// Returns the variants of the groups whose prompts showed `id`, the fastest first: those of
// `max_groups` groups at most.
std::vector<descendant> descendants_of(const pool_inspector& pool, const variant_id& id,
                                       std::size_t max_groups = 1000);
nlohmann::ordered_json descendants_to_json(const pool_inspector& pool, const variant_id& id);
void print_descendants(const pool_inspector& pool, const variant_id& id);

}  // namespace hone
