#include "actors/type_shares.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(TypeShares, GiveEachTypeTheSameTimeAndNoCreditForIdleness) {
  type_shares shares;
  std::map<std::string, int> jobs;
  const auto serve = [&](const std::vector<std::string>& waiting) {
    const std::string next = shares.in_turn(waiting).front();
    shares.count(next);
    shares.learn(next, type_shares::seconds(next == "slow" ? 0.2 : 0.002));
    ++jobs[next];
  };
  shares.begin_to_wait("slow");
  shares.begin_to_wait("fast");
  for (int i = 0; i < 3000; ++i) serve({"fast", "slow"});
  jobs.clear();  // what a job takes is known now
  for (int i = 0; i < 3000; ++i) serve({"fast", "slow"});
  EXPECT_NEAR(jobs["fast"] / jobs["slow"], 100, 15);
  for (int i = 0; i < 100; ++i) serve({"slow"});
  shares.begin_to_wait("fast");
  jobs.clear();
  for (int i = 0; i < 1000; ++i) serve({"fast", "slow"});
  EXPECT_GT(jobs["slow"], 5) << "the fast one must not catch up on time for which it had no jobs";
}

}  // namespace
}  // namespace hone
