#pragma once

#include <cstdint>

namespace hone {

// Nodes talk to each other only when both agree.
inline constexpr std::uint32_t schema_version = 1;  // meaning of the records in messages/schema
inline constexpr std::uint32_t judge_version =
    6;  // how evaluation/ judges: scores of different versions are not comparable

}  // namespace hone
