#pragma once

#include <chrono>

#include "network/channel.hpp"

namespace hone {

// Moves bytes in both directions between a connection and a socket until one of them ends, or until
// nothing has moved for `idle_limit`. Makes the socket non-blocking. Blocks; another thread ends it
// with channel::shut_down().
void relay_bytes(channel& over, int socket, std::chrono::milliseconds idle_limit);

}  // namespace hone
