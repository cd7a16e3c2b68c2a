#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "network/identity.hpp"

struct ssl_st;

namespace hone {

// What one end of a connection expects of the other. The end that listens takes any identity of its
// authority. A head is known by the name and the purpose of its certificate, a node by its
// certificate's purpose: that of a client, the only one that a node's certificate has, so that no
// node can pretend to be a head.
enum class tls_role { listens, connects_to_head, connects_to_node };

// TLS with an identity: version 1.3, certificates on both sides, both of the identity's authority.
// Belongs to one thread.
class tls_side {
 public:
  // Reads the identity's files. Throws network_error.
  tls_side(std::filesystem::path identity, tls_role role);
  ~tls_side();

  // Returns the TLS of a new connection, which the caller owns. Throws network_error.
  ssl_st* open() const;

  // Reads the list of revoked certificates (crl.pem) if the file has changed; new connections with
  // them are refused. Returns whether it had changed. Throws network_error.
  bool read_revocations();
  bool is_revoked(const std::string& serial) const { return revoked_.contains(serial); }

 private:
  struct state;

  std::filesystem::path identity_;
  tls_role role_;
  std::unique_ptr<state> state_;
  std::set<std::string> revoked_;
};

}  // namespace hone
