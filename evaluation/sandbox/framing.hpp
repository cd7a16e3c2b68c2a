#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "evaluation/sandbox/child_process.hpp"

namespace hone {

// The other side of a socket is gone, or talks nonsense.
struct connection_lost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Records over a stream socket: a 32-bit length, then the bytes; descriptors ride with the first
// byte, and are taken only by who asks for them, or a hostile process could fill our table.
struct received_message {
  std::vector<char> bytes;
  std::vector<unique_fd> descriptors;
};

inline constexpr std::size_t max_frame_bytes = 4U << 20U;

// All throw connection_lost. receive_message() returns nothing when the deadline passes first;
// without one it waits, as receive_with_descriptors() does.
void send_message(int socket, const std::vector<char>& bytes,
                  std::span<const int> descriptors = {});
std::optional<received_message> receive_message(
    int socket, std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);
received_message receive_with_descriptors(int socket);

// Two connected stream sockets, both closed on exec.
std::pair<unique_fd, unique_fd> socket_pair();

}  // namespace hone
