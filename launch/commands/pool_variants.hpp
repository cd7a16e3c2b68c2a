#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "messages/schema/variant.capnp.h"
#include "storage/inspection.hpp"

namespace hone {

// Print variants of a pool for `hone pool`, as text on standard output or as JSON. All functions
// throw pool_error.

std::string text(capnp::Text::Reader t);

// Returns the first ten digits of an id.
template <class Id>
std::string short_id(const Id& id) {
  return to_string(id).substr(0, 10);
}

// Returns the task's name, or its short id if the pool does not have the task.
std::string name_or_id(const pool_inspector& pool, const task_id& id);

// Returns a variant's score on each type of device, as "  2.50x on h100", with the outcome in place
// of a score that it does not have.
std::string scores_of(const pool_inspector& pool, const variant_id& id);

// Returns the newest document that holds the variant and is still in the pool (pool.keep_texts).
std::optional<std::string> document_of(const pool_inspector& pool, const variant_id& id);

// Return or print a variant with its code, evaluations and rollouts. Of the rollouts, the text has
// only their number and the document of one.
nlohmann::ordered_json variant_to_json(const pool_inspector& pool,
                                       const schema::Variant::Reader& v);
void print_variant(const pool_inspector& pool, const variant_id& id,
                   const schema::Variant::Reader& v);

// Return or print two variants with the unified difference of their code.
nlohmann::ordered_json difference_to_json(const pool_inspector& pool, const variant_id& from,
                                          const variant_id& to);
void print_difference(const pool_inspector& pool, const variant_id& from, const variant_id& to);

// Return or print a variant with its ancestors: the exemplars that its prompts showed, their
// exemplars, and so on. Each variant appears in full once.
nlohmann::ordered_json lineage_to_json(const pool_inspector& pool, const variant_id& first);
void print_lineage(const pool_inspector& pool, const variant_id& first);

}  // namespace hone
