#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "network/identity.hpp"

struct ssl_st;

namespace hone {

// TLS with an identity: version 1.3, certificates on both sides, both of the identity's authority.
// Belongs to one thread.
class tls_side {
 public:
  // Reads the identity's files. Throws network_error.
  tls_side(std::filesystem::path identity, identity_role role);
  ~tls_side();

  // Returns the TLS of a new connection, which the caller owns. A node's accepts no other end than
  // a head. Throws network_error.
  ssl_st* open() const;

  // Reads the list of revoked certificates (crl.pem) if the file has changed; new connections of
  // these are refused. Returns whether it had changed. Throws network_error.
  bool read_revocations();
  bool is_revoked(const std::string& serial) const { return revoked_.contains(serial); }

 private:
  struct state;

  std::filesystem::path identity_;
  identity_role role_;
  std::unique_ptr<state> state_;
  std::set<std::string> revoked_;
};

}  // namespace hone
