#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "network/address.hpp"

namespace hone {

// Serves the pages of one run. Answers GET and HEAD alone, on loopback addresses or a Unix socket,
// and only requests that call it by a loopback name and show its token: in the link, which sets a
// cookie, or in that cookie. So neither other users of the machine nor pages of other sites can
// read a run. Pages are made one after the other by one thread.
class ui_server {
 public:
  struct options {
    std::filesystem::path run;  // its directory
    network_address listen{"127.0.0.1", 0};
    std::filesystem::path socket;  // a Unix socket; empty: `listen`
    std::string token;             // empty: a random one
  };
  // Listens from now on. Throws pool_error if the run has no pool, and network_error if the address
  // is taken or is not one of this machine alone.
  explicit ui_server(options chosen);
  ~ui_server();

  // Returns the link that opens the first page, with the token. That of a Unix socket is for a
  // client that has connected to the socket.
  std::string link() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
