#include "policy/training/rewards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hone {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

constexpr judged_completion failed{};
judged_completion works(double speedup, double over_best, bool copies = false) {
  return {true, speedup, over_best, copies};
}
judged_completion works(double speedup) { return works(speedup, speedup); }

TEST(Rewards, AreTheSpeedUpByDefault) {
  EXPECT_THAT(group_rewards({works(0.5), failed, works(16)}, {}), ElementsAre(0.5, 0, 16));
}

TEST(Rewards, OfTheShapeLogKeepAGainVisibleBesideALargeOne) {
  reward_options o;
  o.shape = reward_shape::log;
  const auto rewards = group_rewards({failed, works(1), works(1.2), works(16)}, o);
  EXPECT_THAT(rewards, ElementsAre(0, DoubleEq(std::log(2.0)), DoubleEq(std::log(2.2)),
                                   DoubleEq(std::log(17.0))));
  EXPECT_LT(rewards[3] / rewards[2], 4) << "instead of 13";
}

TEST(Rewards, OfTheShapeCappedEndAtTheCap) {
  reward_options o;
  o.shape = reward_shape::capped;
  o.cap = 3;
  EXPECT_THAT(group_rewards({works(2.5), works(16)}, o), ElementsAre(2.5, 3));
}

TEST(Rewards, OfTheShapeTiersSayWhatWasReached) {
  reward_options o;
  o.shape = reward_shape::tiers;
  EXPECT_THAT(group_rewards({failed, works(0.3), works(1.04, 1.04), works(1.5, 1.02),
                             works(1.5, 1.2), works(30, 20)},
                            o),
              ElementsAre(0, 1, 1, 2, 3, 3));
}

TEST(Rewards, OfTheShapeRelativeKeepFailedSlowAndFastApart) {
  reward_options o;
  o.shape = reward_shape::relative;
  const auto shown = [](double speedup) {
    judged_completion one = works(speedup);
    one.best_shown = 8;
    return one;
  };
  const auto rewards = group_rewards({failed, shown(0.01), shown(8), shown(16)}, o);
  EXPECT_THAT(rewards, ElementsAre(0, 0.2, 1, DoubleEq(1 + std::log(2.0) / 2)));
  EXPECT_THAT(group_rewards({works(1), works(2)}, o),
              ElementsAre(1, DoubleEq(1 + std::log(2.0) / 2)))
      << "without exemplars, the reference is what counts";
}

TEST(Rewards, MayBeAgainstTheBestBaseline) {
  reward_options o;
  o.baseline = reward_baseline::best;
  EXPECT_THAT(group_rewards({works(4, 1.5), works(2, 2)}, o), ElementsAre(1.5, 2));
}

TEST(Rewards, OfCopiesAreThoseOfTheirNeighboursIfAskedFor) {
  const std::vector<judged_completion> group = {works(8, 8, true), works(1), works(2), failed};
  EXPECT_THAT(group_rewards(group, {}), ElementsAre(8, 1, 2, 0));
  reward_options o;
  o.copies = copy_rule::as_neighbors;
  EXPECT_THAT(group_rewards(group, o), ElementsAre(1.5, 1, 2, 0));
  EXPECT_THAT(group_rewards({works(0.4, 0.4, true), works(2)}, o), ElementsAre(0.4, 2))
      << "a copy is not paid more than it deserves";
  EXPECT_THAT(group_rewards({works(8, 8, true), failed}, o), ElementsAre(1, 0))
      << "without neighbors, a copy is a program that works";
}

TEST(Rewards, HaveNames) {
  for (const auto shape : {reward_shape::speedup, reward_shape::log, reward_shape::capped,
                           reward_shape::tiers, reward_shape::relative})
    EXPECT_EQ(reward_shape_named(name_of(shape)), shape);
  for (const auto baseline : {reward_baseline::eager, reward_baseline::best})
    EXPECT_EQ(reward_baseline_named(name_of(baseline)), baseline);
  for (const auto rule : {copy_rule::paid, copy_rule::as_neighbors})
    EXPECT_EQ(copy_rule_named(name_of(rule)), rule);
  EXPECT_FALSE(reward_shape_named("linear"));
}

TEST(RewardNoise, IsWhatASpeedUpOfThreePercentChanges) {
  EXPECT_NEAR(reward_noise({works(30), works(10), failed}, {}), 0.03 * 20, 1e-12);
  reward_options logs;
  logs.shape = reward_shape::log;
  EXPECT_NEAR(reward_noise({works(30)}, logs), 0.03 * 30 / 31, 1e-3);
  reward_options capped;
  capped.shape = reward_shape::capped;
  EXPECT_EQ(reward_noise({works(16)}, capped), 0);
  EXPECT_EQ(reward_noise({failed, failed}, {}), 0);
}

}  // namespace
}  // namespace hone
