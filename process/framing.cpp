#include "process/framing.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "process/throw_errno.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t max_descriptors = 4;

// Waits until the socket can be read (POLLIN) or written (POLLOUT). Returns false if the deadline
// passed.
bool wait_until(short event, int socket, std::optional<clock::time_point> deadline) {
  if (!deadline) return true;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(*deadline - clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{socket, event, 0};
    const timespec limit{left / 1000000, left % 1000000 * 1000};
    const int ready = ppoll(&waiting, 1, &limit, nullptr);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw connection_lost("cannot wait for the other process");
  }
}

// Reads exactly `size` bytes. Descriptors that arrive are added to `descriptors`, or dropped if it
// is null. Returns false if the deadline passed.
bool read_all(int socket, char* into, std::size_t size, std::vector<unique_fd>* descriptors,
              std::optional<clock::time_point> deadline) {
  std::size_t got = 0;
  while (got < size) {
    if (!wait_until(POLLIN, socket, deadline)) return false;
    iovec part{into + got, size - got};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptors != nullptr) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
    }
    const ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) throw connection_lost("the other process is gone");
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
        descriptors->emplace_back(fd);
      }
    }
    got += static_cast<std::size_t>(n);
  }
  return true;
}

// Receives one message, with its descriptors if `takes_descriptors`.
std::optional<received_message> receive(int socket, bool takes_descriptors,
                                        std::optional<clock::time_point> deadline) {
  received_message message;
  auto* const descriptors = takes_descriptors ? &message.descriptors : nullptr;
  std::uint32_t length = 0;
  if (!read_all(socket, reinterpret_cast<char*>(&length), sizeof length, descriptors, deadline))
    return std::nullopt;
  if (length > max_frame_bytes)
    throw connection_lost("the other process sent a message of " + std::to_string(length) +
                          " bytes");
  message.bytes.resize(length);
  if (!read_all(socket, message.bytes.data(), length, descriptors, deadline)) return std::nullopt;
  return message;
}

// Sends one message. Returns false if the deadline passed before the socket has taken all of it.
bool send(int socket, const std::vector<char>& bytes, std::span<const int> descriptors,
          std::optional<clock::time_point> deadline) {
  if (descriptors.size() > max_descriptors)
    throw std::invalid_argument("a message with " + std::to_string(descriptors.size()) +
                                " descriptors");
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::array<iovec, 2> parts = {{{const_cast<std::uint32_t*>(&length), sizeof length},
                                 {const_cast<char*>(bytes.data()), bytes.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  std::size_t left = sizeof length + bytes.size();
  while (left > 0) {
    if (!wait_until(POLLOUT, socket, deadline)) return false;
    const ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL | (deadline ? MSG_DONTWAIT : 0));
    if (n < 0 && (errno == EINTR || (deadline && errno == EAGAIN))) continue;
    if (n <= 0) throw connection_lost("the other process is gone");
    left -= static_cast<std::size_t>(n);
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    auto skip = static_cast<std::size_t>(n);
    while (skip > 0 && message.msg_iovlen > 0) {
      const std::size_t step = std::min(skip, message.msg_iov->iov_len);
      message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + step;
      message.msg_iov->iov_len -= step;
      skip -= step;
      if (message.msg_iov->iov_len == 0) {
        ++message.msg_iov;
        --message.msg_iovlen;
      }
    }
  }
  return true;
}

}  // namespace

void send_message(int socket, const std::vector<char>& bytes, std::span<const int> descriptors) {
  (void)send(socket, bytes, descriptors, std::nullopt);
}

bool send_message_by(clock::time_point deadline, int socket, const std::vector<char>& bytes,
                     std::span<const int> descriptors) {
  return send(socket, bytes, descriptors, deadline);
}

std::optional<received_message> receive_message(int socket,
                                                std::optional<clock::time_point> deadline) {
  return receive(socket, false, deadline);
}

received_message receive_with_descriptors(int socket) {
  return *receive(socket, true, std::nullopt);
}

std::pair<unique_fd, unique_fd> socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("cannot make a socket pair");
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

}  // namespace hone
