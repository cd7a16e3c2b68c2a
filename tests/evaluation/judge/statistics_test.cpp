#include "evaluation/judge/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
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

TEST(MedianInterval, KeepsItsWidthForThousandsOfValues) {
  std::vector<double> values(5000);
  std::iota(values.begin(), values.end(), 1.0);
  const interval range = median_interval(values);
  // The normal approximation: 2500 -+ 1.96 * sqrt(5000) / 2.
  EXPECT_NEAR(range.low, 2431, 2);
  EXPECT_NEAR(range.high, 2570, 2);
}

TEST(MedianInterval, CoversTheMedianInMoreThan95PerCentOfTrials) {
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

TEST(Buckets, TakeRoundsInTurnAndAreSummarisedByMedians) {
  std::vector<double> values;
  for (int i = 0; i < 21; ++i) values.push_back(i);  // bucket b holds b, b + 7, b + 14
  EXPECT_EQ(bucket_medians(values), (std::vector<double>{7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(bucket_medians(std::vector<double>{1, 2, 3}).size(), 3U);
}

std::vector<double> logs_around(double speedup, double sigma, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, sigma);
  std::vector<double> logs(n);
  for (double& x : logs) x = std::log(speedup) + noise(random);
  return logs;
}

TEST(Summary, FindsTheSpeedupThroughNoiseAndOutliers) {
  auto logs = logs_around(2.0, 0.02, 21, 3);
  logs[4] += 1.5;  // a disturbed round
  logs[9] -= 1.0;
  const ratio_summary summary = summarize(logs);
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

TEST(Score, LiesInItsInterval) {
  ratio_summary rounded;
  rounded.speedup = 0.5825;
  rounded.range = {0.517, 0.586};
  EXPECT_EQ(combine(std::vector{rounded}).score, 0.59);
  EXPECT_EQ(combine(std::vector{rounded}).range.high, 0.59) << "no score lies outside";
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

}  // namespace
}  // namespace hone
