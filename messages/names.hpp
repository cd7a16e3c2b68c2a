#pragma once

#include <optional>
#include <string_view>

#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/variant.capnp.h"

namespace hone {

using schema::Outcome;
using schema::Stage;

// The fixed names of outcomes ("compile_error") and stages ("self_supervised"), as reports, files
// and users spell them.
std::string_view name_of(Outcome outcome);
std::string_view name_of(Stage stage);
std::string_view name_of(schema::RolloutGroup::Origin origin);
std::optional<Outcome> outcome_named(std::string_view name);

inline constexpr int outcome_count = 11;

}  // namespace hone
