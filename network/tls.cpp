#include "network/tls.hpp"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <optional>
#include <system_error>

#include "network/openssl_handles.hpp"

namespace hone {

namespace fs = std::filesystem;

struct tls_side::state {
  context_handle context;
  std::optional<fs::file_time_type> read;  // when the crl.pem that holds now was written
};

namespace {

revocations_handle read_revocations_of(const fs::path& file) {
  const bio_handle in(BIO_new_file(file.c_str(), "rb"));
  revocations_handle list(in != nullptr ? PEM_read_bio_X509_CRL(in.get(), nullptr, nullptr, nullptr)
                                        : nullptr);
  if (list == nullptr)
    throw network_error(file.string() + ": is not a list of revocations (" +
                        take_openssl_problem() + ")");
  return list;
}

// Returns the context of an identity, with a list of revoked certificates or null. Throws
// network_error.
context_handle make_context(const fs::path& identity, X509_CRL* revoked) {
  context_handle made(SSL_CTX_new(TLS_method()));
  SSL_CTX* const c = made.get();
  if (c == nullptr) throw network_error("TLS cannot be used: " + take_openssl_problem());
  const auto require = [&](int code, const char* file) {
    if (code != 1)
      throw network_error((identity / file).string() + ": cannot be used (" +
                          take_openssl_problem() + ")");
  };
  require(SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION), "certificate.pem");
  require(SSL_CTX_use_certificate_chain_file(c, (identity / "certificate.pem").c_str()),
          "certificate.pem");
  require(SSL_CTX_use_PrivateKey_file(c, (identity / "key.pem").c_str(), SSL_FILETYPE_PEM),
          "key.pem");
  require(SSL_CTX_load_verify_locations(c, (identity / "ca.pem").c_str(), nullptr), "ca.pem");
  if (revoked != nullptr) {
    X509_STORE* const store = SSL_CTX_get_cert_store(c);
    require(X509_STORE_add_crl(store, revoked), "crl.pem");
    require(X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK), "crl.pem");
  }
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_RELEASE_BUFFERS);
  // Session tickets that nobody reads turn the end of a connection into a reset, which loses its
  // last bytes.
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  return made;
}

}  // namespace

tls_side::tls_side(fs::path identity, tls_role role)
    : identity_(std::move(identity)), role_(role), state_(std::make_unique<state>()) {
  if (!read_revocations()) state_->context = make_context(identity_, nullptr);
}

tls_side::~tls_side() = default;

bool tls_side::read_revocations() {
  const fs::path file = identity_ / "crl.pem";
  std::error_code problem;
  const fs::file_time_type written = fs::last_write_time(file, problem);
  if (problem || written == state_->read) return false;
  const revocations_handle list = read_revocations_of(file);
  std::set<std::string> found;
  STACK_OF(X509_REVOKED)* const all = X509_CRL_get_REVOKED(list.get());
  for (int i = 0; i < sk_X509_REVOKED_num(all); ++i) {
    const std::unique_ptr<BIGNUM, openssl_deleter<BN_free>> number(
        ASN1_INTEGER_to_BN(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(all, i)), nullptr));
    found.insert(to_hexadecimal(number.get()));
  }
  state_->context = make_context(identity_, list.get());
  revoked_ = std::move(found);
  state_->read = written;
  return true;
}

ssl_st* tls_side::open() const {
  SSL* const made = SSL_new(state_->context.get());
  if (made == nullptr) throw network_error("TLS cannot be used: " + take_openssl_problem());
  if (role_ == tls_role::listens) {
    SSL_set_accept_state(made);
    return made;
  }
  SSL_set_connect_state(made);
  const bool can_check = role_ == tls_role::connects_to_head
                             ? SSL_set1_host(made, head_name) == 1
                             : SSL_set_purpose(made, X509_PURPOSE_SSL_CLIENT) == 1;
  if (!can_check) {
    SSL_free(made);
    throw network_error("TLS cannot check certificates: " + take_openssl_problem());
  }
  return made;
}

}  // namespace hone
