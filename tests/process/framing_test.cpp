#include "process/framing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <thread>

#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

clock::time_point soon() { return clock::now() + milliseconds(30); }

std::vector<char> framed(std::uint32_t length, const std::string& bytes) {
  std::vector<char> frame(sizeof length + bytes.size());
  std::memcpy(frame.data(), &length, sizeof length);
  std::memcpy(frame.data() + sizeof length, bytes.data(), bytes.size());
  return frame;
}

TEST(Framing, ReceivesTheBytesThatWereSent) {
  const auto [a, b] = socket_pair();
  for (const std::size_t size : {0U, 1U, 8U, 100000U}) {
    std::vector<char> bytes(size, 'x');
    send_message(a.get(), bytes);
    const auto message = receive_message(b.get(), soon() + milliseconds(2000));
    ASSERT_TRUE(message);
    EXPECT_EQ(message->bytes, bytes);
  }
}

TEST(Framing, PassesDescriptorsWithAMessage) {
  const auto [a, b] = socket_pair();
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  const unique_fd read_end(pipe_ends[0]);
  unique_fd write_end(pipe_ends[1]);
  const int sent = write_end.get();
  send_message(a.get(), {'h', 'i'}, {&sent, 1});
  const received_message message = receive_with_descriptors(b.get());
  ASSERT_EQ(message.descriptors.size(), 1U);
  write_end.reset();
  ASSERT_EQ(write(message.descriptors[0].get(), "x", 1), 1);
  char got = 0;
  EXPECT_EQ(read(read_end.get(), &got, 1), 1);
  EXPECT_NE(fcntl(message.descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Framing, ReturnsNothingIfNoMessageArrivesByTheDeadline) {
  const auto [a, b] = socket_pair();
  EXPECT_FALSE(receive_message(b.get(), soon()));
  EXPECT_FALSE(receive_message(b.get(), clock::now() - milliseconds(1)));
}

TEST(Framing, StopsSendingAtTheDeadlineIfNobodyReads) {
  const auto [a, b] = socket_pair();
  const std::vector<char> large(8U << 20U, 'x');  // more than a socket's buffer
  const auto begin = clock::now();
  EXPECT_FALSE(send_message_by(begin + milliseconds(50), a.get(), large));
  EXPECT_LT(clock::now() - begin, milliseconds(5000));
}

// Every piece that is taken must not grant the whole time again.
TEST(Framing, StopsSendingAtTheDeadlineIfTheReaderTakesPieces) {
  auto [a, b] = socket_pair();
  std::thread reader([end = b.get()] {
    std::vector<char> piece(4096);
    while (recv(end, piece.data(), piece.size(), 0) > 0)
      std::this_thread::sleep_for(milliseconds(5));
  });
  const auto begin = clock::now();
  EXPECT_FALSE(
      send_message_by(begin + milliseconds(100), a.get(), std::vector<char>(8U << 20U, 'x')));
  EXPECT_LT(clock::now() - begin, milliseconds(5000));
  a.reset();
  shutdown(b.get(), SHUT_RDWR);
  reader.join();
}

TEST(Framing, SendsAMessageWithDescriptorsBeforeTheDeadline) {
  const auto [a, b] = socket_pair();
  const int sent = b.get();
  std::thread sender([&, end = a.get()] {
    EXPECT_TRUE(send_message_by(clock::now() + milliseconds(20000), end,
                                std::vector<char>(max_frame_bytes, 'x'), {&sent, 1}));
  });
  const received_message message = receive_with_descriptors(b.get());
  sender.join();
  EXPECT_EQ(message.bytes.size(), max_frame_bytes);
  EXPECT_EQ(message.descriptors.size(), 1U);
}

TEST(Framing, DoesNotReturnATruncatedMessage) {
  const std::vector<char> whole = framed(100, std::string(100, 'x'));
  for (const std::size_t cut : {1U, 3U, 4U, 50U, 103U}) {
    auto [from, to] = socket_pair();
    ASSERT_EQ(send(from.get(), whole.data(), cut, 0), static_cast<ssize_t>(cut));
    EXPECT_FALSE(receive_message(to.get(), soon())) << cut;
    from.reset();
    EXPECT_THROW(receive_message(to.get(), soon()), connection_lost) << cut;
  }
}

TEST(Framing, DoesNotAllocateAnAbsurdLength) {
  const auto [a, b] = socket_pair();
  const std::vector<char> frame = framed(0xffffffffU, "x");
  ASSERT_GT(send(a.get(), frame.data(), frame.size(), 0), 0);
  EXPECT_THROW(receive_message(b.get(), soon()), connection_lost);
}

TEST(Framing, ReportsAClosedSocketAsALostConnection) {
  auto [a, b] = socket_pair();
  a.reset();
  EXPECT_THROW(receive_message(b.get(), soon()), connection_lost);
  // SIGPIPE would end this process.
  EXPECT_THROW(send_message(b.get(), std::vector<char>(100, 'x')), connection_lost);
}

TEST(Framing, ReadsOrRefusesRandomBytesWithoutCrashing) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::vector<char> bytes(random() % 200);
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Half of them begin as a real message does: with one segment of the right size.
    if (i % 2 == 0 && bytes.size() >= 16) {
      bytes.resize(bytes.size() / 8 * 8);
      const std::array<std::uint32_t, 2> table = {0,
                                                  static_cast<std::uint32_t>(bytes.size() / 8 - 1)};
      std::memcpy(bytes.data(), table.data(), sizeof table);
    }
    try {
      const auto reply = record<schema::Reply>::from_bytes(std::move(bytes));
      (void)reply->which();
    } catch (const invalid_record&) {
    }
  }
}

TEST(Framing, ReadsOrRefusesDamagedRepliesWithoutCrashing) {
  record_builder<schema::Reply> builder;
  auto failed = builder->initFailed();
  failed.setOutcome(schema::Outcome::CRASH);
  failed.setMessage("why");
  const std::vector<char> good = builder.finish().bytes();
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    std::vector<char> bytes = good;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << (i % 8)));
    try {
      const auto reply = record<schema::Reply>::from_bytes(std::move(bytes));
      if (reply->isFailed()) (void)std::string(reply->getFailed().getMessage());
    } catch (const invalid_record&) {
    }
  }
}

TEST(Framing, RefusesMoreDescriptorsThanAMessageCanCarry) {
  const std::vector<int> descriptors(5, 0);
  EXPECT_THROW(send_message(-1, {}, descriptors), std::invalid_argument);
}

}  // namespace
}  // namespace hone
