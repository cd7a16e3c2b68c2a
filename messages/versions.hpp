#pragma once

#include <cstdint>

namespace hone {

// A node may join a run only if both versions are equal on both sides.

// Version of the records in messages/schema: of their fields and their meaning.
inline constexpr std::uint32_t schema_version = 3;
// Judge version: changes whenever a verdict or score of evaluation/ could. Scores of different
// versions are not comparable.
inline constexpr std::uint32_t judge_version = 18;

}  // namespace hone
