#include "actors/fetcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "actors/timeouts.hpp"
#include "policy/training/checkpoint.hpp"
#include "tests/support/actor_test.hpp"
#include "tests/support/served_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;

class FetcherActor : public actor_test {
 protected:
  FetcherActor() {
    options_.sources.connect = [this] {
      if (is_cut_off_) throw connection_failed("nobody answers");
      return served_.connect();
    };
    options_.cache = cache_.path();
    options_.prepare = [this](const std::filesystem::path& folder) { prepared_.push_back(folder); };
    fetcher_ = own(system_.spawn(fetcher_behavior, std::string("fetcher"), options_));
  }
  void offer(std::uint64_t version) {
    folders_[checkpoint_name(version)] = std::make_shared<offered_folder>(
        make_offered_folder({text_file("weights", "of " + std::to_string(version))}));
  }
  auto request_copy(std::uint64_t version, bool is_pinned = false) {
    return request(fetcher_, fetch_atom_v, version, is_pinned);
  }
  // Returns the folder's name, or "refused".
  template <class Reply>
  static std::string text_of(Reply& reply) {
    std::string text;
    reply.receive(
        [&](const std::string& folder) {
          std::ifstream in(std::filesystem::path(folder) / "weights");
          std::getline(in, text);
        },
        [&](const caf::error&) { text = "refused"; });
    return text;
  }

  temporary_folder cache_;
  std::map<std::string, std::shared_ptr<const offered_folder>> folders_;
  std::vector<std::filesystem::path> prepared_;
  bool is_cut_off_ = false;
  served_files served_{[this](const std::string& name) {
    const auto found = folders_.find(name);
    return found == folders_.end() ? std::shared_ptr<const offered_folder>() : found->second;
  }};
  fetcher_options options_;
  fetcher_actor fetcher_;
};

TEST_F(FetcherActor, CopiesACheckpointOnceForAllWhoAsk) {
  offer(3);
  auto first = request_copy(3);
  auto second = request_copy(3, true);
  settle();
  EXPECT_EQ(text_of(first), "of 3");
  EXPECT_EQ(text_of(second), "of 3");
  auto third = request_copy(3);
  settle();
  EXPECT_EQ(text_of(third), "of 3");
  EXPECT_EQ(prepared_.size(), 1U);
}

TEST_F(FetcherActor, TheLastVersionWinsAndPinnedOnesStay) {
  for (const std::uint64_t version : {1U, 2U, 3U}) offer(version);
  auto older = request_copy(2);
  auto pinned = request_copy(1, true);
  auto newer = request_copy(3);
  settle();
  EXPECT_EQ(text_of(older), "refused");
  EXPECT_EQ(text_of(newer), "of 3");
  EXPECT_EQ(text_of(pinned), "of 1");
  auto late = request_copy(2);
  settle();
  EXPECT_EQ(text_of(late), "refused") << "a later version was wanted already";
}

TEST_F(FetcherActor, APinnedVersionStaysThoughLaterOnesAreHere) {
  for (std::uint64_t version = 10; version <= 16; ++version) {
    offer(version);
    auto reply = request_copy(version);
    settle();
    EXPECT_EQ(text_of(reply), "of " + std::to_string(version));
  }
  offer(3);
  auto compared = request_copy(3, true);
  settle();
  EXPECT_EQ(text_of(compared), "of 3");
  auto again = request_copy(3, true);
  settle();
  EXPECT_EQ(text_of(again), "of 3");
}

TEST_F(FetcherActor, FinishesACopyThatHasBegun) {
  for (const std::uint64_t version : {1U, 2U, 3U}) offer(version);
  auto first = request_copy(1);
  // While it is being copied, two more versions are announced.
  is_cut_off_ = true;
  settle();
  auto second = request_copy(2);
  auto third = request_copy(3);
  settle();
  is_cut_off_ = false;
  advance(timeouts::fetch_retry);
  EXPECT_EQ(text_of(first), "of 1");
  EXPECT_EQ(text_of(second), "refused");
  EXPECT_EQ(text_of(third), "of 3");
}

TEST_F(FetcherActor, GoesOnWhenTheConnectionIsBack) {
  offer(1);
  is_cut_off_ = true;
  auto reply = request_copy(1);
  settle();
  advance(timeouts::fetch_retry);
  is_cut_off_ = false;
  advance(timeouts::fetch_retry);
  EXPECT_EQ(text_of(reply), "of 1");
}

TEST_F(FetcherActor, RefusesACheckpointThatIsGone) {
  auto reply = request_copy(7);
  settle();
  EXPECT_EQ(text_of(reply), "refused");
  offer(8);
  auto next = request_copy(8);
  settle();
  EXPECT_EQ(text_of(next), "of 8");
}

TEST_F(FetcherActor, KeepsTheNewestCopies) {
  for (std::uint64_t version = 1; version <= 9; ++version) {
    offer(version);
    auto reply = request_copy(version);
    settle();
    EXPECT_EQ(text_of(reply), "of " + std::to_string(version));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(cache_.path()), {}), 6);
}

}  // namespace
}  // namespace hone
