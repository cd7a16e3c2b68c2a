#include "launch/run/run_pace.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

// 100 samples in self_supervised, 400 in contrastive, 50 in the comparison.
run_pace::reading at(Stage stage, double step, double steps, std::optional<double> limit_s = {}) {
  return {stage, step, steps, limit_s};
}
std::map<Stage, stage_work> small_plan(std::optional<double> contrastive_limit_s = {}) {
  return {{Stage::SELF_SUPERVISED, {100, {}}},
          {Stage::CONTRASTIVE, {400, contrastive_limit_s}},
          {Stage::COMPARISON, {50, {}}}};
}

TEST(RunPace, KnowsNothingBeforeTheFirstStep) {
  run_pace pace(small_plan());
  EXPECT_FALSE(pace.stage_left_s());
  pace.observe(at(Stage::SFT, 0, 4), 0);
  pace.observe(at(Stage::SFT, 0, 4), 10);
  EXPECT_FALSE(pace.stage_left_s());
  EXPECT_FALSE(pace.run_left_s());
}

TEST(RunPace, KnowsOnlyTheStageWhileThePolicyWritesNothing) {
  run_pace pace(small_plan());
  pace.observe(at(Stage::SFT, 0, 4), 0);
  pace.observe(at(Stage::SFT, 1, 4), 10);
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 30);
  EXPECT_FALSE(pace.run_left_s()) << "how fast the policy writes is not known";
}

TEST(RunPace, ItsStageBeginsWhenTheWaitForTheCorpusEnds) {
  run_pace pace(small_plan());
  run_pace::reading waiting = at(Stage::SFT, 0, 4);
  waiting.has_begun = false;
  pace.observe(waiting, 0);
  pace.observe(waiting, 100);
  pace.observe(at(Stage::SFT, 0, 4), 101);
  pace.observe(at(Stage::SFT, 1, 4), 111);
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 30);
}

TEST(RunPace, EstimatesLaterStagesByTheTimePerSample) {
  run_pace pace(small_plan());
  pace.observe(at(Stage::SELF_SUPERVISED, 0, 4), 100);
  pace.observe(at(Stage::SELF_SUPERVISED, 2, 4), 120);
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 20);  // 50 samples in 20 s: 0.4 s each
  EXPECT_DOUBLE_EQ(*pace.run_left_s(), 20 + 0.4 * 450);
  pace.observe(at(Stage::CONTRASTIVE, 0, 10), 140);
  pace.observe(at(Stage::CONTRASTIVE, 0, 10), 150);
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 0.4 * 400 - 10)
      << "the last stage's pace, until it has one";
  pace.observe(at(Stage::CONTRASTIVE, 1, 10), 180);  // 40 samples in 40 s
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 9 * 40);
  EXPECT_DOUBLE_EQ(*pace.run_left_s(), 9 * 40 + 50);
}

TEST(RunPace, StartsInTheMiddleOfAStageAfterAResumption) {
  run_pace pace(small_plan());
  pace.observe(at(Stage::CONTRASTIVE, 6, 10), 0);
  pace.observe(at(Stage::CONTRASTIVE, 8, 10), 40);
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 40);
  EXPECT_DOUBLE_EQ(*pace.run_left_s(), 40 + 50 * 0.5);
}

TEST(RunPace, ATimeLimitBoundsItsStage) {
  run_pace pace(small_plan(60.0));
  pace.observe(at(Stage::SELF_SUPERVISED, 0, 4), 0);
  pace.observe(at(Stage::SELF_SUPERVISED, 4, 4), 100);  // a second per sample
  EXPECT_DOUBLE_EQ(*pace.run_left_s(), 60 + 50);
  pace.observe(at(Stage::CONTRASTIVE, 0, 1000, 60.0), 101);
  pace.observe(at(Stage::CONTRASTIVE, 1, 1000, 50.0), 111);
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 50);
  pace.observe(at(Stage::CONTRASTIVE, 6, 1000, -1.0), 162);
  EXPECT_DOUBLE_EQ(*pace.stage_left_s(), 0) << "the stage is over its limit";
}

}  // namespace
}  // namespace hone
