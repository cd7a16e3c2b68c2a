#include "process/line_connection.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace hone {
namespace {

class LineConnection : public testing::Test {
 protected:
  LineConnection() {
    auto [ours, theirs] = socket_pair();
    connection = line_connection(std::move(ours), "the peer", 100);
    peer = std::move(theirs);
  }
  void peer_writes(const std::string& text) const {
    ASSERT_EQ(write(peer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  static line_connection::deadline soon() {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  }
  line_connection connection;
  unique_fd peer;
};

TEST_F(LineConnection, ReadsLinesAndAnnouncedBytesHoweverTheyArrive) {
  peer_writes("one\ntwo");
  EXPECT_EQ(connection.read_line(), "one");
  EXPECT_EQ(connection.read_line(soon()), std::nullopt) << "half of a line";
  peer_writes(" halves\n12\n34rest");
  EXPECT_EQ(connection.read_line(), "two halves");
  EXPECT_EQ(connection.read_bytes(5), "12\n34");
  EXPECT_EQ(connection.read_bytes(5, soon()), std::nullopt);
  peer_writes("s\n");
  EXPECT_EQ(connection.read_line(), "rests");
}

TEST_F(LineConnection, SendsAndEnds) {
  connection.send("hello\n");
  connection.end_sending();
  std::string seen(10, ' ');
  EXPECT_EQ(read(peer.get(), seen.data(), seen.size()), 6);
  EXPECT_EQ(read(peer.get(), seen.data(), seen.size()), 0);
}

TEST_F(LineConnection, SaysThatTheOtherSideEnded) {
  peer_writes("last\n");
  peer.reset();
  EXPECT_EQ(connection.read_line(), "last");
  try {
    connection.read_line();
    FAIL();
  } catch (const connection_lost& e) {
    EXPECT_STREQ(e.what(), "the peer ended");
  }
  EXPECT_THROW(connection.send("anything"), connection_lost);
}

TEST_F(LineConnection, TakesNoMoreThanItMay) {
  peer_writes(std::string(101, 'x'));
  EXPECT_THROW(connection.read_line(), std::length_error);
  EXPECT_THROW(connection.read_bytes(101), std::length_error);
}

}  // namespace
}  // namespace hone
