#pragma once

#include <chrono>
#include <cstddef>

#include "network/channel.hpp"

namespace hone {

inline constexpr auto endless = std::chrono::steady_clock::time_point::max();

// Read or write all bytes, and wait up to `patience` for the other end each time that nothing
// moves, but no longer than until `end`. Throw connection_failed, whose message is a part of a
// sentence.
void read_all(channel& from, void* to, std::size_t size, std::chrono::milliseconds patience,
              std::chrono::steady_clock::time_point end = endless);
void write_all(channel& to, const void* from, std::size_t size, std::chrono::milliseconds patience);

}  // namespace hone
