#pragma once

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "actors/timeouts.hpp"
#include "messages/interfaces.hpp"
#include "network/address.hpp"
#include "network/channel.hpp"
#include "network/preface.hpp"

namespace hone {

// CAF's configuration: registers all message types and sets up the network for records of megabytes
// between nodes.
class actor_configuration : public caf::actor_system_config {
 public:
  explicit actor_configuration(const signs_of_life& signs);
};

// Starts the actor system. It and its configuration are never destroyed: destruction would wait for
// connections, and everything durable is on disk. Its threads run until main() leaves by _exit,
// which skips the destructors of static objects that these threads may use. A write to a
// connection whose other end is gone becomes an error in the whole process, not a signal, and as
// many descriptors may be open as the system allows.
caf::actor_system& start_actor_system(const signs_of_life& signs = {});

// The versions that two nodes must have in common.
std::map<std::string, std::uint32_t> versions_of_this_program();

// A run's first node, as others reach it.
struct head_address {
  std::string address;             // HOST:PORT, or the path of a file that holds it
  std::filesystem::path identity;  // of the one that connects; empty: without TLS
};

// Returns the address, which a file may change. Throws network_error if it is none, or is of
// another machine without an identity.
network_address find_address(const head_address& head);

// Returns how to reach the head of the live run in a folder; with an identity or, by default, the
// head's own. Throws std::runtime_error.
head_address head_of_run(const std::filesystem::path& directory, const std::string& identity);

// Connects to a head and returns its node. `purpose` and `name` are those of the preface. As long
// as `wait`, it repeats what may be otherwise a moment later. Throws network_error.
node_actor connect(caf::actor_system& system, const head_address& head, const std::string& purpose,
                   const std::string& name, std::chrono::seconds wait = std::chrono::seconds(0));

// Connects to a head for copies of its files (network/files/). Throws network_error.
std::shared_ptr<channel> connect_for_files(const head_address& head, const std::string& name);

}  // namespace hone
