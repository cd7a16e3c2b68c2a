#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "process/unique_fd.hpp"

namespace hone {

// The process at the other end of a socket is gone, or violates the framing.
struct connection_lost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Messages over a stream socket: a 32-bit length in the machine's byte order, then the bytes. File
// descriptors travel with the first byte. Only receive_with_descriptors() takes them: a hostile
// process could otherwise fill this process's descriptor table.
struct received_message {
  std::vector<char> bytes;
  std::vector<unique_fd> descriptors;
};

inline constexpr std::size_t max_frame_bytes = 4U << 20U;

// Throws connection_lost.
void send_message(int socket, const std::vector<char>& bytes,
                  std::span<const int> descriptors = {});
// Returns nullopt if the deadline passes before a whole message has arrived. Without a deadline it
// waits indefinitely. Throws connection_lost.
std::optional<received_message> receive_message(
    int socket, std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);
// Waits indefinitely. Throws connection_lost.
received_message receive_with_descriptors(int socket);

// Returns two connected stream sockets, both closed on exec. Throws std::system_error.
std::pair<unique_fd, unique_fd> socket_pair();

}  // namespace hone
