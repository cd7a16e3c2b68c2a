#include "network/byte_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <vector>

namespace hone {
namespace {

// Bytes of one direction that were read and are still to be written.
class pending_bytes {
 public:
  bool empty() const { return begin_ == end_; }
  char* room() { return bytes_.data(); }
  std::size_t room_size() const { return bytes_.size(); }
  void fill(std::size_t count) {
    begin_ = 0;
    end_ = count;
  }
  const char* data() const { return bytes_.data() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  void consume(std::size_t count) { begin_ += count; }

 private:
  std::vector<char> bytes_ = std::vector<char>(std::size_t{64} << 10U);
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class relay {
 public:
  relay(channel& over, int socket) : over_(over), socket_(socket) {}

  void run(std::chrono::milliseconds idle_limit) {
    while (!has_ended_) {
      has_moved_ = false;
      wanted_ = {0, 0};
      move_in();
      move_out();
      if (has_ended_ || has_moved_) continue;
      std::array<pollfd, 2> both = {
          {{over_.descriptor(), wanted_[0], 0}, {socket_, wanted_[1], 0}}};
      if (poll(both.data(), both.size(), static_cast<int>(idle_limit.count())) <= 0) return;
    }
  }

 private:
  void move_in() {
    if (in_.empty()) {
      std::size_t count = 0;
      if (note(over_.read(in_.room(), in_.room_size(), count))) in_.fill(count);
    }
    if (in_.empty() || has_ended_) return;
    const ssize_t count = send(socket_, in_.data(), in_.size(), MSG_NOSIGNAL);
    if (note(count, POLLOUT)) in_.consume(static_cast<std::size_t>(count));
  }

  void move_out() {
    if (out_.empty() && !has_ended_) {
      const ssize_t count = recv(socket_, out_.room(), out_.room_size(), 0);
      if (note(count, POLLIN)) out_.fill(static_cast<std::size_t>(count));
    }
    if (out_.empty()) return;
    std::size_t count = 0;
    if (note(over_.write(out_.data(), out_.size(), count))) out_.consume(count);
  }

  // Take note of what came of an attempt; return true if bytes have moved.
  bool note(channel_result result) {
    if (result == channel_result::closed) has_ended_ = true;
    if (result == channel_result::wants_read) wanted_[0] |= POLLIN;
    if (result == channel_result::wants_write) wanted_[0] |= POLLOUT;
    has_moved_ = has_moved_ || result == channel_result::done;
    return result == channel_result::done;
  }
  bool note(ssize_t count, short wanted) {
    if (count > 0) {
      has_moved_ = true;
      return true;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      wanted_[1] = static_cast<short>(wanted_[1] | wanted);
    } else {
      has_ended_ = true;
    }
    return false;
  }

  channel& over_;
  int socket_;
  pending_bytes in_;   // from the connection to the socket
  pending_bytes out_;  // from the socket to the connection
  std::array<short, 2> wanted_{};
  bool has_moved_ = false;
  bool has_ended_ = false;
};

}  // namespace

void relay_bytes(channel& over, int socket, std::chrono::milliseconds idle_limit) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  relay(over, socket).run(idle_limit);
}

}  // namespace hone
