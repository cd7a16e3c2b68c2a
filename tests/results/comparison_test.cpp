#include "results/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hone {
namespace {

std::vector<compared_sample> all_of(std::size_t count, double score) {
  return std::vector<compared_sample>(count, {true, score});
}

TEST(ComparisonOfPolicies, TakesTheMeanOfLogSpeedUpsOverTasks) {
  const auto r = compare_policies(
      {{"a", all_of(4, 1), all_of(4, std::exp(1))}, {"b", all_of(4, 2), all_of(4, 2)}}, 1000, 1);
  EXPECT_NEAR(r.before.log_score, std::log(2.0) / 2, 1e-12);
  EXPECT_NEAR(r.difference, 0.5, 1e-12);  // (1 + 0) / 2
}

TEST(ComparisonOfPolicies, AFailedSampleCountsAsAFixedSpeedUp) {
  const auto r = compare_policies(
      {{"a", {{true, 0.01}, {true, 3}, {false, 0}}, {{true, 4}, {true, 4}}}}, 1000, 1);
  EXPECT_NEAR(r.before.log_score, (std::log(0.01) + std::log(3.0) + std::log(0.25)) / 3, 1e-12)
      << "whatever the lowest score is";
  EXPECT_NEAR(r.tasks.front().before.ok, 2.0 / 3, 1e-12);
}

TEST(ComparisonOfPolicies, ShowsTheShareOfOkAndTheirSpeedUpApart) {
  const auto r = compare_policies({{"a", {{true, 2}, {false, 0}}, {{true, 8}, {true, 2}}},
                                   {"b", {{false, 0}, {false, 0}}, {{true, 2}, {false, 0}}}},
                                  1000, 1);
  EXPECT_NEAR(r.before.ok, 0.25, 1e-12);
  EXPECT_NEAR(r.after.ok, 0.75, 1e-12);
  EXPECT_NEAR(r.before.solved, 0.5, 1e-12);
  EXPECT_NEAR(r.after.solved, 1, 1e-12);
  EXPECT_NEAR(r.before.log_of_ok, std::log(2.0), 1e-12) << "task b has no ok sample before";
  EXPECT_NEAR(r.after.log_of_ok, (std::log(4.0) + std::log(2.0)) / 2, 1e-12);
  EXPECT_NEAR(r.after.log_best, (std::log(8.0) + std::log(2.0)) / 2, 1e-12);
  EXPECT_NEAR(r.before.log_best, (std::log(2.0) + std::log(0.25)) / 2, 1e-12);
}

TEST(ComparisonOfPolicies, CanLeaveOutCopies) {
  const std::vector<compared_task> tasks = {
      {"a", {{true, 1}, {true, 16, true}}, {{true, 2}, {true, 16, true}, {true, 16, true}}},
      {"only copies after", {{true, 1}}, {{true, 9, true}}}};
  EXPECT_NEAR(compare_policies(tasks, 1000, 1).after.copy_share, (2.0 / 3 + 1) / 2, 1e-12);
  const auto r = compare_policies(without_copies(tasks), 1000, 1);
  ASSERT_EQ(r.tasks.size(), 1U) << "the other task has nothing left to compare";
  EXPECT_NEAR(r.difference, std::log(2.0), 1e-12);
}

bool excludes_zero(const comparison_result& found) { return found.low > 0 || found.high < 0; }

TEST(ComparisonOfPolicies, ALargeGainOnOneTaskDoesNotMakeTheIntervalExcludeZero) {
  std::vector<compared_task> tasks = {{"won", all_of(16, 1), all_of(16, 40)}};
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.3);
  for (int t = 0; t < 9; ++t) {
    compared_task same{"same" + std::to_string(t), {}, {}};
    for (int i = 0; i < 16; ++i) {
      same.before.push_back({true, std::exp(noise(random))});
      same.after.push_back({true, std::exp(noise(random))});
    }
    tasks.push_back(same);
  }
  EXPECT_FALSE(excludes_zero(compare_policies(tasks, 4000, 1)));
}

TEST(ComparisonOfPolicies, AGainOnEveryTaskMakesTheIntervalExcludeZero) {
  std::vector<compared_task> tasks;
  std::mt19937_64 random(6);
  std::normal_distribution<double> noise(0, 0.5);
  for (int t = 0; t < 10; ++t) {
    compared_task better{"task" + std::to_string(t), {}, {}};
    for (int i = 0; i < 16; ++i) {
      better.before.push_back({true, std::exp(noise(random))});
      better.after.push_back({true, std::exp(0.5 + noise(random))});
    }
    tasks.push_back(better);
  }
  const auto r = compare_policies(tasks, 4000, 1);
  EXPECT_GT(r.low, 0);
  EXPECT_NEAR(r.difference, 0.5, 0.25);
}

// Without a difference, a 95 % interval excludes zero about one time in twenty.
TEST(ComparisonOfPolicies, TheIntervalOfEqualPoliciesSeldomExcludesZero) {
  int found = 0;
  for (std::uint64_t trial = 0; trial < 100; ++trial) {
    std::mt19937_64 random(trial);
    std::normal_distribution<double> noise(0, 0.4);
    std::vector<compared_task> tasks;
    for (int t = 0; t < 10; ++t) {
      compared_task same{"task", {}, {}};
      for (int i = 0; i < 16; ++i) {
        same.before.push_back({noise(random) > -0.4, std::exp(noise(random))});
        same.after.push_back({noise(random) > -0.4, std::exp(noise(random))});
      }
      tasks.push_back(same);
    }
    found += excludes_zero(compare_policies(tasks, 500, trial)) ? 1 : 0;
  }
  EXPECT_LE(found, 13);  // binomial(100, 0.05): above 13 with probability 0.0005
}

}  // namespace
}  // namespace hone
