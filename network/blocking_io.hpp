#pragma once

#include <chrono>
#include <cstddef>

#include "network/channel.hpp"

namespace hone {

// Read or write all bytes, and wait for the other end until the deadline. Throw connection_failed,
// whose message is a part of a sentence.
void read_all(channel& from, void* to, std::size_t size,
              std::chrono::steady_clock::time_point deadline);
void write_all(channel& to, const void* from, std::size_t size,
               std::chrono::steady_clock::time_point deadline);

}  // namespace hone
