#pragma once

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "messages/interfaces.hpp"

namespace hone {

// CAF's configuration: registers all message types and sets up the network for records of megabytes
// between nodes.
class actor_configuration : public caf::actor_system_config {
 public:
  actor_configuration();
};

// Splits "127.0.0.1:4242" into host and port. Only loopback addresses are accepted, because nodes
// cannot authenticate each other. Throws std::runtime_error with the reason.
std::pair<std::string, std::uint16_t> parse_address(const std::string& address);

// Starts the actor system. It and its configuration are never destroyed: destruction would wait for
// connections, and everything durable is on disk. Its threads run until main() leaves by _exit,
// which skips the destructors of static objects that these threads may use.
caf::actor_system& start_actor_system();

// How long to wait for a node. CAF reads the header of a new connection before it knows its sender
// and allocates the announced payload, so strangers can keep a node's network thread busy for
// seconds.
inline constexpr std::chrono::seconds connect_limit{30};

// Connects to the node at an address. While nothing listens there, it tries again for as long as
// `wait`. Throws std::runtime_error.
node_actor connect(caf::actor_system& system, const std::string& address,
                   std::chrono::seconds wait = std::chrono::seconds(0));

}  // namespace hone
