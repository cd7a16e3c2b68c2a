#pragma once

#include <sys/socket.h>

#include <memory>
#include <utility>

#include "network/channel.hpp"
#include "network/identity.hpp"

namespace hone::testing_support {

// Returns the two ends of a connection without a network: a pair of sockets. Throws
// connection_failed.
inline std::pair<std::shared_ptr<channel>, std::shared_ptr<channel>> connected_channels() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    throw connection_failed("no sockets are left");
  return {std::make_shared<channel>(unique_fd(ends[0]), nullptr),
          std::make_shared<channel>(unique_fd(ends[1]), nullptr)};
}

}  // namespace hone::testing_support
