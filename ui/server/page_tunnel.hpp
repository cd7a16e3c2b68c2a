#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "network/address.hpp"

namespace hone {

// Shows the pages of a run of another machine: listens on this one, and passes each connection on
// to the run's head over a connection of its port, with the same certificates as a node's.
class page_tunnel {
 public:
  struct options {
    network_address head;
    std::filesystem::path identity;  // empty: without TLS, for a head of this machine
    network_address listen{"127.0.0.1", 0};
    std::filesystem::path socket;  // a Unix socket; empty: `listen`
  };
  // Asks the head for the pages' token, and listens from now on. Throws network_error or
  // connection_failed.
  explicit page_tunnel(options chosen);
  ~page_tunnel();

  // Returns the link that opens the first page, with the token.
  std::string link() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
