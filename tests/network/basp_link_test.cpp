// Tests of CAF's messages over connections that were let in. Both ends are actor systems of this
// process, and a connection is a pair of sockets.

#include "network/basp/basp_link.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/connected_channels.hpp"

namespace hone {
namespace {

using std::chrono::seconds;

struct networked : caf::actor_system_config {
  networked() { load<caf::io::middleman>(); }
};

class BaspLink : public testing::Test {
 protected:
  BaspLink() {
    auto [head_end, node_end] = testing_support::connected_channels();
    basp_link(head_).serve(head_end, echo_);
    head_end_ = std::move(head_end);
    found_ = basp_link(node_).open(std::move(node_end), limit);
  }
  ~BaspLink() override {
    head_end_->shut_down();
    caf::anon_send_exit(echo_, caf::exit_reason::user_shutdown);
  }

  static constexpr seconds limit{20};
  networked head_configuration_, node_configuration_;
  caf::actor_system head_{head_configuration_};
  caf::actor_system node_{node_configuration_};
  caf::actor echo_ =
      head_.spawn([]() -> caf::behavior { return {[](const std::string& text) { return text; }}; });
  std::shared_ptr<channel> head_end_;
  caf::actor found_;  // echo_, as the node sees it
};

// Megabytes do not fit into a socket: a part of such a message is written at once, and the messages
// behind it have to wait for the rest.
TEST_F(BaspLink, MessagesOfAnySizeArriveWholeAndInOrder) {
  const std::vector<std::size_t> sizes = {1, 5'000'000, 2, 300'000, 3, 2048, 2'000'000, 4};
  caf::scoped_actor self(node_);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      self->send(found_, std::string(sizes[i], static_cast<char>('a' + i)));
  }
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      bool is_equal = false;
      self->receive(
          [&](const std::string& text) {
            is_equal = text == std::string(sizes[i], static_cast<char>('a' + i));
          },
          caf::after(limit) >> [] {});
      ASSERT_TRUE(is_equal) << "message " << i << " of round " << round;
    }
  }
}

TEST_F(BaspLink, WhoWritesToAConnectionThatEndedIsToldOfIt) {
  caf::scoped_actor self(node_);
  self->monitor(found_);
  head_end_->shut_down();
  self->send(found_, std::string(5'000'000, 'x'));
  bool is_told = false;
  self->receive([&](const caf::down_msg& down) { is_told = down.source == found_.address(); },
                caf::after(limit) >> [] {});
  EXPECT_TRUE(is_told);
}

}  // namespace
}  // namespace hone
