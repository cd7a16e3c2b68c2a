#pragma once

#include <cstdint>
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

// The kind of an evaluation `unparsable` of a program that may be right, but that Hone cannot
// judge.
inline constexpr std::string_view unsupported_kind = "unsupported";

// Returns true for the outcomes that say nothing of the variant: `infrastructure` and `unstable`.
// Samples that ended so neither train the policy nor count when policies are compared.
inline bool is_inconclusive(Outcome outcome) {
  return outcome == Outcome::INFRASTRUCTURE || outcome == Outcome::UNSTABLE;
}
// Returns true for the outcomes that say for certain that the variant deserves no score.
inline bool is_refuted(Outcome outcome) {
  return outcome != Outcome::OK && !is_inconclusive(outcome);
}

// Returns true for the stages whose samples are judged afresh and never trained on.
inline bool is_compared(Stage stage) {
  return stage == Stage::COMPARISON || stage == Stage::VALIDATION;
}

// Evaluations of one variant are kept apart by scope, so that no claim mixes them. A scope is one
// of the kinds below, plus scope_kinds times the version at which a comparison or validation began:
// each judges its variants afresh.
inline constexpr std::uint32_t run_scope = 0;
inline constexpr std::uint32_t comparison_scope = 1;
// Screenings, which are short measurements, of groups that are trained on and of comparisons.
inline constexpr std::uint32_t screening_scope = 2;
inline constexpr std::uint32_t screened_comparison_scope = 3;
inline constexpr std::uint32_t scope_kinds = 4;

inline bool is_comparison(std::uint32_t scope) {
  const std::uint32_t kind = scope % scope_kinds;
  return kind == comparison_scope || kind == screened_comparison_scope;
}
inline bool is_screening(std::uint32_t scope) {
  const std::uint32_t kind = scope % scope_kinds;
  return kind == screening_scope || kind == screened_comparison_scope;
}
// Returns the scope of the evaluations that a group waits for.
std::uint32_t scope_of(const schema::RolloutGroup::Reader& group);

}  // namespace hone
