#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace hone {

// Thrown for a broken identity and an address that cannot be used. The message is a sentence.
class network_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What may be otherwise a moment later.
class connection_failed : public network_error {
 public:
  using network_error::network_error;
};
// Nothing listens at an address: the head may be starting.
class nobody_listens : public connection_failed {
 public:
  using connection_failed::connection_failed;
};
// The head has said why it does not let the node in, or refuses its certificate.
class refused_by_head : public network_error {
 public:
  using network_error::network_error;
};

// An authority is a folder with a separate certificate authority, which decides who takes part in
// a run: ca.pem and ca.key, the folder `identities` with one identity each, the list `issued`, and
// crl.pem, the certificates that were revoked (RFC 5280). An identity is a folder with ca.pem,
// certificate.pem and key.pem (PEM; ECDSA over P-256). Keys are readable by their owner only.

inline constexpr std::array<const char*, 3> identity_files = {"ca.pem", "certificate.pem",
                                                              "key.pem"};

enum class identity_role {
  head,  // of the first node of a run, to which the others connect
  node,  // of a node that joins; cannot pretend to be a head
};

// The name that a head's certificate bears, by which a node knows that it speaks with a head of the
// same run, whatever the host is called.
inline constexpr const char* head_name = "head.hone";

struct issued_identity {
  std::string serial;  // hexadecimal
  std::string name;
  identity_role role = identity_role::node;
  std::string expires;  // "2027-01-31"
  bool is_revoked = false;
};

// Makes an authority in a folder that is empty or does not exist. Throws network_error.
void make_authority(const std::filesystem::path& authority,
                    std::chrono::days validity = std::chrono::days(3650));

// Issues an identity and returns its folder, AUTHORITY/identities/NAME. A name consists of letters,
// digits, '-', '_' and '.'. Throws network_error, also if there is one of this name that is not
// revoked.
std::filesystem::path make_identity(const std::filesystem::path& authority, const std::string& name,
                                    identity_role role,
                                    std::chrono::days validity = std::chrono::days(365));

// Returns all identities that an authority has issued, in this order. Throws network_error.
std::vector<issued_identity> list_identities(const std::filesystem::path& authority);

// Revokes the identity of this name. A running head whose identity lies in the authority's folder
// refuses it from then on, and ends its connections. Throws network_error if there is none.
void revoke_identity(const std::filesystem::path& authority, const std::string& name);

}  // namespace hone
