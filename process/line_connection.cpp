#include "process/line_connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace hone {

void line_connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw connection_lost(name_ + " has gone");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void line_connection::end_sending() { shutdown(socket_.get(), SHUT_WR); }

bool line_connection::receive(deadline until) {
  int left_ms = -1;
  if (until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        *until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    left_ms = static_cast<int>(left.count());
  }
  pollfd waiting{socket_.get(), POLLIN, 0};
  const int ready = poll(&waiting, 1, left_ms);
  if (ready == 0) return false;
  std::array<char, 64U << 10U> buffer{};
  // Without data, read() would wait beyond the deadline.
  const ssize_t n = ready > 0 ? read(socket_.get(), buffer.data(), buffer.size()) : -1;
  if (n < 0 && errno == EINTR) return true;  // nothing has come: the caller asks again
  if (n <= 0) throw connection_lost(name_ + " ended");
  received_.append(buffer.data(), static_cast<std::size_t>(n));
  if (received_.size() > max_bytes_) throw std::length_error(name_ + " sends too much");
  return true;
}

std::string line_connection::take(std::size_t count, std::size_t end_bytes) {
  std::string taken = received_.substr(0, count);
  received_.erase(0, count + end_bytes);
  return taken;
}

std::optional<std::string> line_connection::read_line(deadline until) {
  std::size_t end = 0;
  while ((end = received_.find('\n')) == std::string::npos) {
    if (!receive(until)) return std::nullopt;
  }
  return take(end, 1);
}

std::optional<std::string> line_connection::read_bytes(std::size_t count, deadline until) {
  if (count > max_bytes_) throw std::length_error(name_ + " sends too much");
  while (received_.size() < count) {
    if (!receive(until)) return std::nullopt;
  }
  return take(count, 0);
}

}  // namespace hone
