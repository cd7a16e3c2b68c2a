#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "network/address.hpp"
#include "network/channel.hpp"
#include "network/preface.hpp"

namespace hone {

// A connection whose other end has said who it is and was let in.
struct admitted_peer {
  std::shared_ptr<channel> connection;
  preface said;
  std::string certificate;  // its common name; empty without TLS
};

struct acceptor_options {
  network_address listen;
  // Of a head, or of a node that passes files on; empty: without TLS, on a loopback address only.
  std::filesystem::path identity;
  // Limits of connections that have not been let in yet: their time, and their number, beyond which
  // the oldest is closed.
  std::chrono::milliseconds patience{3000};
  std::size_t max_waiting = 512;
  // The functions are called on the acceptor's thread, and must neither block nor throw.
  std::function<std::string(const preface&)>
      find_problem;  // why not to let it in; empty: let it in
  std::function<void(admitted_peer)> admit;
  std::function<void(const std::string&)> log;  // refusals and ended connections, a sentence each
};

// Lets connections in, on a dedicated thread: makes the TLS handshake, reads the preface, answers,
// and hands the connection over. Strangers cost that thread alone. A node that joins again under
// its name has its earlier connection ended first, and is let in when that one's owner has let it
// go. A name belongs to the certificate that first joined under it. Ends the connections of an
// identity that is revoked.
class acceptor {
 public:
  // Listens from now on. Throws network_error.
  explicit acceptor(acceptor_options options);
  // Stops letting in; connections that were handed over stay.
  ~acceptor();

  // Returns where it listens, with the port that it has taken if it was asked for any.
  const network_address& address() const;

 private:
  class loop;
  std::unique_ptr<loop> loop_;
};

}  // namespace hone
