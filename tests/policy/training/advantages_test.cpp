#include "policy/training/advantages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace hone {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Rewards of a group in which one of sixteen completions works.
std::vector<double> one_success() {
  std::vector<double> rewards(16, 0);
  rewards[5] = 16;
  return rewards;
}

TEST(GroupAdvantages, AreStandardisedWithThePopulationDeviation) {
  // Mean 2, population variance (4 + 1 + 0 + 9) / 4 = 3.5; the epsilon is 1e-6 of 5.
  const double deviation = std::sqrt(3.5) + 5e-6;
  EXPECT_THAT(group_advantages(std::vector<double>{0, 1, 2, 5}),
              ElementsAre(DoubleNear(-2 / deviation, 1e-12), DoubleNear(-1 / deviation, 1e-12),
                          DoubleNear(0, 1e-12), DoubleNear(3 / deviation, 1e-12)));
}

TEST(GroupAdvantages, OfEqualRewardsAreExactlyZero) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> reward(0, 100);
  for (int group = 0; group < 2000; ++group) {
    const std::vector<double> equal(16, reward(random));
    EXPECT_THAT(group_advantages(equal), Each(0.0)) << equal.front();
  }
}

TEST(GroupAdvantages, DoNotDependOnTheScaleOfTheRewards) {
  const std::vector<double> rewards = {0, 1, 1.5, 3};
  const auto expected = group_advantages(rewards);
  for (const double scale : {1e-4, 1e4}) {
    std::vector<double> scaled = rewards;
    for (double& r : scaled) r *= scale;
    const auto advantages = group_advantages(scaled);
    for (std::size_t i = 0; i < rewards.size(); ++i) EXPECT_NEAR(advantages[i], expected[i], 1e-9);
  }
}

TEST(GroupAdvantages, OfNoRewardsAreNone) { EXPECT_TRUE(group_advantages({}).empty()); }

TEST(StepAdvantages, SumToZeroAfterTheClip) {
  const auto advantages = step_advantages({{one_success()}}, {outlier_rule::recentre, 1.5}).at(0);
  EXPECT_NEAR(sum(advantages), 0, 1e-12) << "the losers are not pushed down by what was clipped";
  // By hand: the success has sqrt(15) = 3.873, clipped to 1.5; the others -1 / sqrt(15) = -0.2582.
  // Their mean is -0.1483.
  EXPECT_NEAR(advantages[5], 1.6483, 1e-4);
  EXPECT_NEAR(advantages[0], -0.1099, 1e-4);
}

TEST(StepAdvantages, OfRandomGroupsSumToZeroUnderEitherRule) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> speedup(0, 2);
  for (const outlier_rule rule : {outlier_rule::recentre, outlier_rule::smooth}) {
    std::vector<rewarded_group> groups(50);
    for (auto& group : groups) {
      for (int i = 0; i < 16; ++i) group.rewards.push_back(random() % 3 == 0 ? 0 : speedup(random));
    }
    for (const auto& advantages : step_advantages(groups, {rule, 1.5})) {
      EXPECT_EQ(advantages.size(), 16U);
      EXPECT_NEAR(sum(advantages), 0, 1e-9) << name_of(rule);
    }
  }
}

TEST(StepAdvantages, SmoothedKeepASmallGainVisibleBesideALargeOne) {
  std::vector<double> rewards = {0, 0, 1.0, 1.3, 16};
  const auto plain = group_advantages(rewards);
  const auto smoothed = step_advantages({{rewards}}, {outlier_rule::smooth, 1.5}).at(0);
  EXPECT_GT(smoothed[3] - smoothed[0], plain[3] - plain[0])
      << "the distance between a failure and a small gain grows as the outlier shrinks";
  EXPECT_GT(smoothed[4], smoothed[3]);
}

TEST(StepAdvantages, OfEqualGroupsAreZeroUnderEitherRule) {
  for (const outlier_rule rule : {outlier_rule::recentre, outlier_rule::smooth}) {
    const auto advantages = step_advantages({{{2.1, 2.1, 2.1}}, {{0, 1, 4}}}, {rule, 1.5});
    EXPECT_THAT(advantages[0], Each(0.0));
    EXPECT_GT(advantages[1][2], 0);
  }
}

// Fifteen programs of the same speed and one that was measured 0.2 % faster.
std::vector<double> equal_programs() {
  std::vector<double> rewards(16, 30.0);
  rewards[3] = 30.06;
  return rewards;
}

TEST(StepAdvantages, OfDifferencesThatSayNothingAreSmall) {
  const std::vector<double> real = {0, 0, 1, 1, 1, 1, 2, 4};
  for (const outlier_rule rule : {outlier_rule::recentre, outlier_rule::smooth}) {
    const auto advantages = step_advantages({{equal_programs(), 0.9}, {real, 0.03}}, {rule, 1.5});
    EXPECT_LT(advantages[0][3], 0.15) << name_of(rule) << ": 1.65 without noise";
    EXPECT_GT(advantages[0][3], 0);
    EXPECT_NEAR(sum(advantages[0]), 0, 1e-9);
    const auto without = step_advantages({{equal_programs()}, {real}}, {rule, 1.5});
    EXPECT_EQ(advantages[1], without[1]) << "a real difference keeps its strength";
  }
}

TEST(OutlierRules, HaveNames) {
  for (const outlier_rule rule : {outlier_rule::recentre, outlier_rule::smooth})
    EXPECT_EQ(outlier_rule_named(name_of(rule)), rule);
  EXPECT_FALSE(outlier_rule_named("clip"));
}

TEST(StepAdvantages, ThatAreNotScaledAreDifferencesFromTheMean) {
  const std::vector<rewarded_group> rewards = {{{1.0, 1.1}}, {{0.0, 4.0}}};
  advantage_options o;
  o.scaled = false;
  o.limit = 1.5;
  const auto advantages = step_advantages(rewards, o);
  EXPECT_NEAR(advantages[0][1], 0.05, 1e-12) << "a group that hardly differs weighs little";
  EXPECT_NEAR(advantages[1][1], 1.5, 1e-12) << "2 is clipped to the limit";
  EXPECT_NEAR(advantages[1][0], -1.5, 1e-12);
}

}  // namespace
}  // namespace hone
