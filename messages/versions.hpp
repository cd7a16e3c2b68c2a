#pragma once

#include <cstdint>

namespace hone {

// A node may join a run only if both versions are equal on both sides.

// Version of the records in messages/schema, their fields and their meaning, and of the messages
// between actors of different nodes (interfaces.hpp).
inline constexpr std::uint32_t schema_version = 11;
// Judge version: changes whenever a verdict or score of evaluation/ could. Scores of different
// versions are not comparable.
inline constexpr std::uint32_t judge_version = 28;

}  // namespace hone
