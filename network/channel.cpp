#include "network/channel.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "network/identity.hpp"
#include "network/openssl_handles.hpp"

namespace hone {
namespace {

int limited(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

certificate_handle certificate_of(const SSL* tls) {
  return certificate_handle(tls != nullptr ? SSL_get1_peer_certificate(tls) : nullptr);
}

}  // namespace

channel::channel(unique_fd socket, ssl_st* tls) : descriptor_(socket.release()), tls_(tls) {
  if (tls_ != nullptr && SSL_set_fd(tls_, descriptor_) != 1)
    throw network_error("TLS cannot be used: " + take_openssl_problem());
}

channel::~channel() {
  if (tls_ != nullptr) SSL_free(tls_);
  if (is_owned_) close(descriptor_);
}

channel_result channel::result_of(int code, std::size_t& moved) {
  moved = 0;
  if (code > 0) {
    moved = static_cast<std::size_t>(code);
    return channel_result::done;
  }
  if (tls_ == nullptr) {
    if (code == 0) return channel_result::closed;
    return errno == EAGAIN || errno == EINTR ? channel_result::wants_read : channel_result::closed;
  }
  const int reason = SSL_get_error(tls_, code);
  if (reason == SSL_ERROR_WANT_READ) return channel_result::wants_read;
  if (reason == SSL_ERROR_WANT_WRITE) return channel_result::wants_write;
  problem_ = reason == SSL_ERROR_SSL ? take_openssl_problem() : "the connection ended";
  ERR_clear_error();
  return channel_result::closed;
}

channel_result channel::shake_hands() {
  if (tls_ == nullptr) return channel_result::done;
  ERR_clear_error();  // a failure of another connection on this thread is not this one's
  std::size_t moved = 0;
  return result_of(SSL_do_handshake(tls_), moved);
}

channel_result channel::read(void* to, std::size_t size, std::size_t& moved) {
  ERR_clear_error();
  if (tls_ != nullptr) return result_of(SSL_read(tls_, to, limited(size)), moved);
  return result_of(static_cast<int>(recv(descriptor(), to, limited(size), 0)), moved);
}

channel_result channel::write(const void* from, std::size_t size, std::size_t& moved) {
  ERR_clear_error();
  if (tls_ != nullptr) return result_of(SSL_write(tls_, from, limited(size)), moved);
  const auto sent = send(descriptor(), from, limited(size), MSG_NOSIGNAL);
  const channel_result result = result_of(static_cast<int>(sent), moved);
  return result == channel_result::wants_read ? channel_result::wants_write : result;
}

std::size_t channel::buffered() const {
  return tls_ != nullptr ? static_cast<std::size_t>(SSL_pending(tls_)) : 0;
}

bool channel::wait(channel_result wanted, std::chrono::steady_clock::time_point deadline) const {
  pollfd one{descriptor(),
             static_cast<short>(wanted == channel_result::wants_write ? POLLOUT : POLLIN), 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const int ready = poll(&one, 1, static_cast<int>(left.count()));
    if (ready >= 0 || errno != EINTR) return ready == 1;
  }
}

void channel::shut_down() {
  const std::scoped_lock guard(ending_);
  if (is_open_) shutdown(descriptor_, SHUT_RDWR);
}

int channel::lend() {
  const std::scoped_lock guard(ending_);
  is_owned_ = false;
  return descriptor_;
}

void channel::note_closing() {
  const std::scoped_lock guard(ending_);
  is_open_ = false;
}

std::string channel::certificate_name() const {
  const certificate_handle certificate = certificate_of(tls_);
  return certificate != nullptr ? name_of(certificate.get()) : "";
}

std::string channel::certificate_serial() const {
  const certificate_handle certificate = certificate_of(tls_);
  return certificate != nullptr ? serial_of(certificate.get()) : "";
}

bool channel::is_refused() const {
  return problem_.find("alert") != std::string::npos ||
         (tls_ != nullptr && SSL_get_verify_result(tls_) != X509_V_OK);
}

std::string channel::handshake_problem() const {
  const long verified = tls_ != nullptr ? SSL_get_verify_result(tls_) : X509_V_OK;
  if (verified != X509_V_OK)
    return std::string("its certificate is refused: ") + X509_verify_cert_error_string(verified);
  if (problem_.find("peer did not return a certificate") != std::string::npos)
    return "it shows no certificate";
  if (problem_.find("wrong version number") != std::string::npos ||
      problem_.find("http request") != std::string::npos ||
      problem_.find("packet length too long") != std::string::npos)
    return "it does not speak TLS";
  return problem_.empty() ? "the connection ended" : problem_;
}

}  // namespace hone
