#pragma once

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "messages/interfaces.hpp"

namespace hone {

// CAF with everything that travels registered, and its network set up for records of megabytes
// between nodes.
class actor_configuration : public caf::actor_system_config {
 public:
  actor_configuration();
};

// "127.0.0.1:4242" as its parts. Only loopback addresses are accepted: nodes do not know who talks
// to them. Throws std::runtime_error with the reason.
std::pair<std::string, std::uint16_t> parse_address(const std::string& address);

// Never torn down, nor is its configuration: connections would be waited for, and what is durable
// is on disk. Its threads run until the process leaves by _exit, which main does: destructors of
// static objects would run beside them.
caf::actor_system& start_actor_system();

// The node actor behind an address, connected within the limit. Throws std::runtime_error.
node_actor connect(caf::actor_system& system, const std::string& address,
                   std::chrono::seconds limit);

}  // namespace hone
