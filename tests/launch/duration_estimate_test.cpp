#include "launch/run/duration_estimate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

sft_stage_options supervised(std::int64_t updates, double minutes = 0) {
  sft_stage_options o;
  o.updates = updates;
  o.batch = 4;
  o.minutes = minutes;
  return o;
}

std::map<Stage, stage_work> stages(std::optional<double> limit_s = {}) {
  return {{Stage::CONTRASTIVE, {600, limit_s}}, {Stage::COMPARISON, {120, {}}}};
}

TEST(DurationEstimate, CountsTheSlowerOfJudgingAndTraining) {
  const auto trained = estimate_duration(10, supervised(30), false, stages(), {0.5, 2});
  ASSERT_EQ(trained.parts.size(), 3U);
  EXPECT_DOUBLE_EQ(trained.parts[0].minutes, 30 * 4 * 2 / 60.0);
  EXPECT_DOUBLE_EQ(trained.parts[1].minutes, 600 * 2 / 60.0);
  EXPECT_DOUBLE_EQ(trained.parts[2].minutes, 120 * 0.5 / 60) << "a comparison trains on nothing";
  EXPECT_DOUBLE_EQ(trained.minutes, 4 + 20 + 1);
  const auto judged = estimate_duration(1200, supervised(30), false, stages(), {1, 0.1});
  EXPECT_EQ(judged.parts[0].name, "judging the corpus");
  EXPECT_DOUBLE_EQ(judged.minutes, 20 + 10 + 2);
}

TEST(DurationEstimate, EndsStagesAtTheirLimits) {
  const auto expected = estimate_duration(0, supervised(3000, 3), false, stages(120), {1, 1});
  EXPECT_DOUBLE_EQ(expected.minutes, 3 + 2 + 2);
  EXPECT_THAT(
      describe(expected),
      testing::HasSubstr("about 7 minutes (sft 3.0 (its limit), contrastive 2.0 (its limit), "
                         "comparison 2.0)"));
  const auto streamed = estimate_duration(0, supervised(1000000, 10), true, {}, {0, 0});
  EXPECT_DOUBLE_EQ(streamed.minutes, 10);
  EXPECT_FALSE(streamed.parts[0].is_limited);
}

TEST(DurationEstimate, IsNothingWithoutWork) {
  EXPECT_TRUE(estimate_duration(0, supervised(0), false, {}, {1, 1}).parts.empty());
}

}  // namespace
}  // namespace hone
