#pragma once

#include <caf/actor.hpp>
#include <caf/fwd.hpp>
#include <caf/io/scribe.hpp>

#include <chrono>
#include <memory>

#include "network/channel.hpp"

namespace hone {

// CAF speaks BASP over connections that it accepts and opens itself, without asking who is there.
// This gives its broker connections that were let in already (acceptor.hpp, connecting.hpp). CAF's
// network thread reads and writes them from then on, and closes them.
class basp_link {
 public:
  // Starts the system's broker, if it has none yet. The system must outlive this.
  explicit basp_link(caf::actor_system& system);

  // Hands over a connection that a head has let in; the other end finds `whom`. Safe on any thread.
  void serve(std::shared_ptr<channel> connection, const caf::actor& whom) const;
  // Hands over a connection to a head. Returns the actor that the head lets others find. Blocks for
  // `limit` at most. Throws connection_failed: CAF gives up what it is opening when it looks for
  // connections that have fallen silent.
  caf::actor open(std::shared_ptr<channel> connection, std::chrono::milliseconds limit) const;

 private:
  caf::io::scribe_ptr scribe_of(std::shared_ptr<channel> connection) const;

  caf::actor_system& system_;
  caf::actor broker_;
};

}  // namespace hone
