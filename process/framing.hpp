#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "process/unique_fd.hpp"

namespace hone {

// Thrown if the process at the other end of a socket is gone or violates the framing.
struct connection_lost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A message over a stream socket: a 32-bit length in the machine's byte order, then the bytes. File
// descriptors travel with the first byte. Only receive_with_descriptors() accepts descriptors,
// because a hostile process could otherwise fill this process's descriptor table.
struct received_message {
  std::vector<char> bytes;
  std::vector<unique_fd> descriptors;
};

// Largest message that is received.
inline constexpr std::size_t max_frame_bytes = 4U << 20U;

// Sends one message, with at most four descriptors. Blocks until the socket has taken all of it, so
// that a process which stops reading blocks the caller. For replies to a trusted process. Throws
// std::invalid_argument for more descriptors. Throws connection_lost.
void send_message(int socket, const std::vector<char>& bytes,
                  std::span<const int> descriptors = {});
// Sends one message as send_message() does. Returns false if the deadline passes before the socket
// has taken all of it. The other process may have got a part, so the connection must then be given
// up.
[[nodiscard]] bool send_message_by(std::chrono::steady_clock::time_point deadline, int socket,
                                   const std::vector<char>& bytes,
                                   std::span<const int> descriptors = {});
// Receives one message and drops descriptors that arrive with it. Returns nullopt if the deadline
// passes before a whole message has arrived. Waits indefinitely if there is no deadline. Throws
// connection_lost.
std::optional<received_message> receive_message(
    int socket, std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);
// Receives one message with its descriptors. Waits indefinitely. Throws connection_lost.
received_message receive_with_descriptors(int socket);

// Returns two connected stream sockets, both closed on exec. Throws std::system_error.
std::pair<unique_fd, unique_fd> socket_pair();

}  // namespace hone
