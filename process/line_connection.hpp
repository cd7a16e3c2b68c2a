#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "process/framing.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// A stream socket over which a process and this one send each other lines, and bytes that a line
// has announced. Confined to one thread. Functions throw connection_lost if the other side has
// closed its end.
class line_connection {
 public:
  using deadline = std::optional<std::chrono::steady_clock::time_point>;  // none: no limit
  line_connection() = default;
  // `name`: of the other side, for messages. `max_bytes`: that may wait here to be read; more is a
  // std::length_error.
  line_connection(unique_fd socket, std::string name, std::size_t max_bytes)
      : socket_(std::move(socket)), name_(std::move(name)), max_bytes_(max_bytes) {}

  // Blocks until the socket has taken all bytes.
  void send(std::string_view bytes);
  // Lets the other side see the end of what was sent.
  void end_sending();
  // Return the next line without its end, or the next bytes; nullopt if the deadline passes first.
  std::optional<std::string> read_line(deadline until = std::nullopt);
  std::optional<std::string> read_bytes(std::size_t count, deadline until = std::nullopt);

 private:
  // Waits for more bytes. Returns false at the deadline.
  bool receive(deadline until);
  std::string take(std::size_t count, std::size_t end_bytes);

  unique_fd socket_;
  std::string name_;
  std::size_t max_bytes_ = 0;
  std::string received_;
};

}  // namespace hone
