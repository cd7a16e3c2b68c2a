#include "evaluation/judge/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hone {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_THROW(median(std::vector<double>{}), std::invalid_argument);
}

TEST(MedianInterval, TakesTheRanksOfTheBinomialTables) {
  // Conover, table A3 (p = 0.5): for n = 10 the interval is [x2, x9], for n = 20 [x6, x15], for n =
  // 7 [x1, x7].
  std::vector<double> values;
  for (int i = 1; i <= 20; ++i) values.push_back(i);
  interval range = median_interval(values);
  EXPECT_EQ(range.low, 6);
  EXPECT_EQ(range.high, 15);
  range = median_interval(std::span(values).first(10));
  EXPECT_EQ(range.low, 2);
  EXPECT_EQ(range.high, 9);
  range = median_interval(std::span(values).first(7));
  EXPECT_EQ(range.low, 1);
  EXPECT_EQ(range.high, 7);
}

TEST(MedianInterval, CoversTheMedianAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> draw(1.0);
  int covered = 0;
  constexpr int trials = 4000;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> values(15);
    for (double& x : values) x = draw(random);
    const interval range = median_interval(values);
    covered += range.low <= std::log(2.0) && std::log(2.0) <= range.high ? 1 : 0;
  }
  EXPECT_GT(covered, trials * 0.95);
}

TEST(Rounding, IsTowardOne) {
  EXPECT_DOUBLE_EQ(round_toward_one(1.237), 1.23);
  EXPECT_DOUBLE_EQ(round_toward_one(0.874), 0.88);
  EXPECT_DOUBLE_EQ(round_toward_one(1.23), 1.23);
  EXPECT_DOUBLE_EQ(round_toward_one(0.29), 0.29);  // 0.29 * 100 is 28.999999999999996
  EXPECT_DOUBLE_EQ(round_toward_one(1.0), 1.0);
  EXPECT_DOUBLE_EQ(round_toward_one(12.999), 12.99);
}

TEST(Buckets, AreDealtInTurnAndSummarisedByMedians) {
  std::vector<double> values;
  for (int i = 0; i < 21; ++i) values.push_back(i);  // bucket b holds b, b + 7, b + 14
  EXPECT_EQ(bucket_medians(values), (std::vector<double>{7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(bucket_medians(std::vector<double>{1, 2, 3}).size(), 3U);
}

std::vector<double> noisy(double speedup, double sigma, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, sigma);
  std::vector<double> logs(n);
  for (double& x : logs) x = std::log(speedup) + noise(random);
  return logs;
}

TEST(Summary, FindsTheSpeedupThroughNoiseAndOutliers) {
  auto logs = noisy(2.0, 0.02, 21, 3);
  logs[4] += 1.5;  // something else ran
  logs[9] -= 1.0;
  const ratio_summary summary = summarise(logs);
  EXPECT_NEAR(summary.speedup, 2.0, 0.04);
  EXPECT_LT(summary.range.low, 2.0);
  EXPECT_GT(summary.range.high, 2.0);
  EXPECT_EQ(summary.buckets.size(), bucket_count);
}

TEST(Score, IsOneWhenTheIntervalContainsOne) {
  ratio_summary same;
  same.speedup = 1.02;
  same.range = {0.99, 1.04};
  EXPECT_EQ(combine(std::vector{same}).score, 1.0);
  same.range = {1.01, 1.04};
  EXPECT_EQ(combine(std::vector{same}).score, 1.02);
}

TEST(Score, IsTheGeometricMeanOfItsCases) {
  ratio_summary fast;
  fast.speedup = 8;
  fast.range = {7.9, 8.1};
  ratio_summary slow;
  slow.speedup = 0.5;
  slow.range = {0.49, 0.51};
  const scored_ratio scored = combine(std::vector{fast, slow});
  EXPECT_NEAR(scored.raw, 2.0, 1e-12);
  EXPECT_EQ(scored.score, 2.0);
}

TEST(StoppingRule, AsksForTheLeastNumberOfRoundsAtLeast) {
  const timing_rules rules;
  const auto exact = noisy(1.5, 0, 20, 1);
  EXPECT_EQ(decide(rules, std::span(exact).first(6), 1e8), timing_decision::go_on);
  EXPECT_EQ(decide(rules, std::span(exact).first(7), 1e8), timing_decision::settled);
}

TEST(StoppingRule, ASmallDifferenceMustShowInManyRounds) {
  timing_rules rules;
  rules.near_equal = 0.02;
  rules.near_equal_rounds = 60;
  const auto nearly = noisy(1.01, 0.001, 60, 1);
  EXPECT_EQ(decide(rules, std::span(nearly).first(20), 1e8), timing_decision::go_on);
  EXPECT_EQ(decide(rules, std::span(nearly).first(20), rules.budget_ns), timing_decision::settled)
      << "but not for longer than others";
  EXPECT_EQ(decide(rules, nearly, 1e8), timing_decision::settled);
  const auto equal = noisy(1, 0.01, 20, 1);
  EXPECT_EQ(decide(rules, equal, 1e8), timing_decision::settled) << "1 is in the interval";
  const auto twice = noisy(2, 0.001, 20, 1);
  EXPECT_EQ(decide(rules, twice, 1e8), timing_decision::settled);
  rules.equal_log_ratio = std::log(2);
  EXPECT_EQ(decide(rules, twice, 1e8), timing_decision::settled)
      << "as equal as programs are in these processes";
  rules.equal_log_ratio = std::log(2.02);
  EXPECT_EQ(decide(rules, twice, 1e8), timing_decision::go_on);
}

TEST(StoppingRule, GivesUpOnTheHopelessAfterThreeRounds) {
  const timing_rules rules;
  const auto slow = noisy(0.15, 0.01, 3, 1);
  EXPECT_EQ(decide(rules, std::span(slow).first(2), 0), timing_decision::go_on);
  EXPECT_EQ(decide(rules, slow, 0), timing_decision::hopeless);
  const auto slowish = noisy(0.25, 0.01, 3, 1);
  EXPECT_EQ(decide(rules, slowish, 0), timing_decision::go_on);
}

TEST(StoppingRule, SpendsTheDoubledBudgetBeforeItCallsATimeUnstable) {
  const timing_rules rules;
  const auto wild = noisy(1.0, 0.6, 30, 5);
  EXPECT_EQ(decide(rules, wild, rules.budget_ns * 1.9), timing_decision::go_on);
  EXPECT_EQ(decide(rules, wild, rules.budget_ns * 2.1), timing_decision::unstable);
  const auto middling = noisy(1.0, 0.18, 30, 5);  // between the two widths: as good as it gets
  EXPECT_EQ(decide(rules, middling, rules.budget_ns * 2.1), timing_decision::settled);
}

}  // namespace
}  // namespace hone
