#pragma once

#include <optional>
#include <string_view>

#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/variant.capnp.h"

namespace hone {

using schema::Outcome;
using schema::Stage;

// Return the fixed names of outcomes ("compile_error"), stages of learning ("self_supervised"),
// origins ("corpus") and arms of a comparison ("greedy"), as reports, files and users spell them. A
// value outside of its enumeration is "unknown"; an outcome throws std::out_of_range instead.
std::string_view name_of(Outcome outcome);
std::string_view name_of(Stage stage);
std::string_view name_of(schema::RolloutGroup::Origin origin);
std::string_view name_of(schema::Draw::Arm arm);
// Returns the outcome of a name, or nullopt if no outcome has it.
std::optional<Outcome> outcome_named(std::string_view name);

// Returns the kind of a device type by its name: `cpu`, `simulated`, or else `cuda`. Names begin
// with the kind, those of GPUs with the model.
std::string_view device_kind_of(std::string_view device_type);

inline constexpr int outcome_count = 11;

// Returns true for the outcomes that say nothing of the variant: `infrastructure` and `unstable`.
// Samples that ended so neither train the policy nor count when policies are compared.
inline bool is_inconclusive(Outcome outcome) {
  return outcome == Outcome::INFRASTRUCTURE || outcome == Outcome::UNSTABLE;
}
// Returns true for the outcomes that say for certain that the variant deserves no score.
inline bool is_refuted(Outcome outcome) {
  return outcome != Outcome::OK && !is_inconclusive(outcome);
}

}  // namespace hone
