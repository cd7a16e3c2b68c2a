#include "network/byte_relay.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "network/blocking_io.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;

std::pair<unique_fd, unique_fd> connected_sockets(int flags = 0) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends) != 0)
    throw std::runtime_error("no sockets");
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

// A channel and a socket that a thread relays between, and their other ends.
class ByteRelay : public testing::Test {
 protected:
  ByteRelay() {
    auto [near, far] = connected_sockets(SOCK_NONBLOCK);
    near_ = std::make_unique<channel>(std::move(near), nullptr);
    far_ = std::make_unique<channel>(std::move(far), nullptr);
    auto [inner, outer] = connected_sockets();
    socket_ = std::move(inner);
    client_ = std::move(outer);
    relay_ = std::thread([this] {
      relay_bytes(*near_, socket_.get(), limit_);
      near_->shut_down();
      socket_.reset();
    });
  }
  ~ByteRelay() override {
    near_->shut_down();
    if (relay_.joinable()) relay_.join();
  }

  std::unique_ptr<channel> near_;
  std::unique_ptr<channel> far_;
  unique_fd socket_;
  unique_fd client_;
  milliseconds limit_{10000};
  std::thread relay_;
};

TEST_F(ByteRelay, MovesManyBytesInBothDirectionsAtOnce) {
  const std::string up(3'000'000, 'u');
  const std::string down(5'000'000, 'd');
  std::thread writes_up([&] { write_all(*far_, up.data(), up.size(), limit_); });
  std::string received(up.size(), ' ');
  std::thread reads_up([&] {
    for (std::size_t at = 0; at < received.size();) {
      const ssize_t count = read(client_.get(), received.data() + at, received.size() - at);
      if (count <= 0) return;
      at += static_cast<std::size_t>(count);
    }
  });
  std::thread writes_down([&] {
    for (std::size_t at = 0; at < down.size();) {
      const ssize_t count = write(client_.get(), down.data() + at, down.size() - at);
      if (count <= 0) return;
      at += static_cast<std::size_t>(count);
    }
  });
  writes_up.join();  // a channel belongs to one thread at a time
  std::string other(down.size(), ' ');
  read_all(*far_, other.data(), other.size(), limit_);
  writes_down.join();
  reads_up.join();
  EXPECT_EQ(received, up);
  EXPECT_EQ(other, down);
}

TEST_F(ByteRelay, EndsWithEitherEnd) {
  client_.reset();
  char c = 0;
  EXPECT_THROW(read_all(*far_, &c, 1, limit_), std::exception);
  relay_.join();
}

TEST_F(ByteRelay, EndsWithTheConnectionAfterItsLastBytes) {
  write_all(*far_, "last", 4, limit_);
  far_->shut_down();
  std::string received(5, ' ');
  std::size_t count = 0;
  for (ssize_t n = 1;
       n > 0 && count<received.size(); count += n> 0 ? static_cast<std::size_t>(n) : 0)
    n = read(client_.get(), received.data() + count, received.size() - count);
  EXPECT_EQ(received.substr(0, count), "last");
}

}  // namespace
}  // namespace hone
