#pragma once

#include <chrono>
#include <cstddef>

#include "network/channel.hpp"

namespace hone {

// Read or write all bytes, and wait up to `patience` for the other end each time that nothing
// moves. Throw connection_failed, whose message is a part of a sentence.
void read_all(channel& from, void* to, std::size_t size, std::chrono::milliseconds patience);
void write_all(channel& to, const void* from, std::size_t size, std::chrono::milliseconds patience);

}  // namespace hone
