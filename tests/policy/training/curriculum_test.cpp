#include "policy/training/curriculum.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

// Curriculum of a scripted policy, which passes through the stages without learning.
class Curriculum : public testing::Test {
 protected:
  Curriculum() {
    options_.sft.updates = 250;
    options_.sft.updates_per_step = 100;
    options_.self_supervised.steps = 1;
    options_.contrastive.steps = 2;
  }
  curriculum make() const {
    return {options_, nullptr,
            std::make_shared<const prompt_template>(prompt_template::parse("{{task}}\n", "test")),
            tasks_, 1};
  }

  curriculum_options options_;
  task_table tasks_;
};

record<schema::TrainingBatch> batch(const std::vector<std::pair<Outcome, double>>& results) {
  record_builder<schema::TrainingBatch> b;
  auto group = b->initGroups(1)[0];
  auto list = group.initResults(static_cast<unsigned>(results.size()));
  group.initGroup().initRollouts(static_cast<unsigned>(results.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setOutcome(results[i].first);
    list[i].setScore(results[i].second);
  }
  return b.finish();
}

TEST_F(Curriculum, PassesThroughTheStagesInOrder) {
  curriculum c = make();
  std::vector<Stage> seen;
  while (c.stage() != Stage::COMPARISON) {
    if (c.stage() == Stage::SFT) {
      while (c.sft_updates_left_in_step() > 0) c.sft_update();
      c.end_sft_step();
    } else {
      c.learn(*batch({{Outcome::OK, 1}}), 0);
    }
    seen.push_back(c.stage());
    c.advance();
  }
  EXPECT_EQ(seen, (std::vector<Stage>{Stage::SFT, Stage::SFT, Stage::SFT, Stage::SELF_SUPERVISED,
                                      Stage::CONTRASTIVE, Stage::CONTRASTIVE}))
      << "250 updates make three steps of at most 100";
}

TEST_F(Curriculum, SkipsStagesWithoutSteps) {
  options_.sft.updates = 0;
  options_.self_supervised.steps = 0;
  curriculum c = make();
  EXPECT_TRUE(c.advance());
  EXPECT_EQ(c.stage(), Stage::CONTRASTIVE);
}

TEST_F(Curriculum, EndsTheContrastiveStageAtItsTimeLimitButNotBeforeItsFirstStep) {
  options_.sft.updates = 0;
  options_.self_supervised.steps = 0;
  options_.contrastive.steps = 1000;
  options_.contrastive.minutes = 1e-9;
  curriculum c = make();
  c.advance();
  EXPECT_EQ(c.stage(), Stage::CONTRASTIVE);
  c.learn(*batch({{Outcome::OK, 1}}), 0);
  EXPECT_TRUE(c.advance());
  EXPECT_EQ(c.stage(), Stage::COMPARISON);
}

TEST_F(Curriculum, EndsSupervisedTrainingAtItsTimeLimit) {
  options_.sft.updates = 1000000;
  options_.sft.minutes = 1e-15;
  curriculum c = make();
  EXPECT_GT(c.sft_updates_left_in_step(), 0) << "the time begins with the first update";
  c.sft_update();
  EXPECT_EQ(c.sft_updates_left_in_step(), 0);
  c.end_sft_step();
  EXPECT_EQ(c.step(), 1);
  EXPECT_TRUE(c.advance());
  EXPECT_NE(c.stage(), Stage::SFT);
}

TEST_F(Curriculum, CountsTheTimeInAStageBeforeACheckpoint) {
  const temporary_folder folder;
  options_.sft.minutes = 100;
  curriculum a = make();
  a.sft_update();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double left = a.seconds_left().value();
  EXPECT_LT(left, 6000 - 0.02);
  a.take_checkpoint()(folder / "1");
  curriculum b = make();
  b.load(folder / "1");
  EXPECT_LE(b.seconds_left().value(), left);
  EXPECT_GT(b.seconds_left().value(), left - 60);
}

TEST_F(Curriculum, ContinuesFromACheckpoint) {
  const temporary_folder folder;
  curriculum a = make();
  while (a.sft_updates_left_in_step() > 0) a.sft_update();
  a.end_sft_step();
  a.take_checkpoint()(folder / "1");
  curriculum b = make();
  b.load(folder / "1");
  EXPECT_EQ(b.stage(), Stage::SFT);
  EXPECT_EQ(b.step(), 1);
  EXPECT_EQ(b.sft_updates_left_in_step(), 100);
}

TEST_F(Curriculum, AnInterruptedStepGoesOnWhereItEnded) {
  options_.sft.updates = 130;
  const temporary_folder folder;
  curriculum a = make();
  for (int i = 0; i < 10; ++i) a.sft_update();
  EXPECT_TRUE(a.has_new_updates());
  a.end_sft_step();
  EXPECT_FALSE(a.advance()) << "most updates are left";
  EXPECT_EQ(a.step(), 0);
  a.take_checkpoint()(folder / "1");
  curriculum b = make();
  b.load(folder / "1");
  EXPECT_FALSE(b.has_new_updates());
  int updates = 10;
  while (b.stage() == Stage::SFT) {
    for (; b.sft_updates_left_in_step() > 0; ++updates) b.sft_update();
    b.end_sft_step();
    EXPECT_EQ(updates, b.step() == 1 ? 100 : 130);
    b.advance();
  }
  EXPECT_EQ(updates, 130);
}

TEST_F(Curriculum, MakesNoUpdatesTwiceWhereStepsHaveBecomeShorter) {
  const temporary_folder folder;
  curriculum a = make();
  for (int i = 0; i < 60; ++i) a.sft_update();
  a.end_sft_step();
  a.take_checkpoint()(folder / "1");
  options_.sft.updates_per_step = 50;
  curriculum b = make();
  b.load(folder / "1");
  EXPECT_LE(b.sft_updates_left_in_step(), 0);
  b.end_sft_step();
  EXPECT_EQ(b.sft_updates_left_in_step(), 50);
}

TEST(Curve, HasEvenlySpacedVersionsWithinAStage) {
  curriculum_options plan;
  plan.sft.updates = 1000;
  plan.sft.updates_per_step = 100;
  plan.contrastive.steps = 3;
  const auto on_curve = [&](Stage stage, std::int64_t count) {
    plan.comparison.curve = count;
    std::vector<std::int64_t> steps;
    for (std::int64_t step = 0; step <= 12; ++step) {
      if (is_on_curve(plan, stage, step)) steps.push_back(step);
    }
    return steps;
  };
  EXPECT_THAT(on_curve(Stage::SFT, 0), testing::IsEmpty());
  EXPECT_THAT(on_curve(Stage::SFT, 1), testing::ElementsAre(5));
  EXPECT_THAT(on_curve(Stage::SFT, 4), testing::ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(on_curve(Stage::SFT, 3), testing::ElementsAre(3, 5, 8));
  EXPECT_THAT(on_curve(Stage::CONTRASTIVE, 9), testing::ElementsAre(1, 2));
  EXPECT_THAT(on_curve(Stage::COMPARISON, 9), testing::IsEmpty());
}

TEST_F(Curriculum, ReplacesGroupsWhoseRewardsDoNotDiffer) {
  options_.contrastive.groups = 1;
  const auto all_failed = batch({{Outcome::CRASH, 0}, {Outcome::WRONG_RESULT, 0}});
  const auto all_alike = batch({{Outcome::OK, 30.0}, {Outcome::OK, 30.2}, {Outcome::OK, 29.9}});
  const auto differ = batch({{Outcome::OK, 30.0}, {Outcome::CRASH, 0}});
  EXPECT_EQ(make().missing_groups({}), 1U);
  EXPECT_EQ(make().missing_groups({all_failed}), 0U) << "max_groups does not allow it";
  options_.contrastive.max_groups = 3;
  const curriculum replacing = make();
  EXPECT_EQ(replacing.missing_groups({differ}), 0U);
  EXPECT_EQ(replacing.missing_groups({all_failed}), 1U);
  EXPECT_EQ(replacing.missing_groups({all_alike}), 1U) << "0.7 % says nothing";
  EXPECT_EQ(replacing.missing_groups({all_failed, all_alike}), 1U);
  EXPECT_EQ(replacing.missing_groups({all_failed, all_alike, differ}), 0U);
  EXPECT_EQ(replacing.missing_groups({all_failed, all_alike, all_failed}), 0U);
  const auto none = record_builder<schema::TrainingBatch>().finish();
  EXPECT_EQ(replacing.missing_groups({all_failed, none}), 0U);
}

TEST(DescribeBatch, CountsFailuresAsScoreZeroAndExcludesThemFromTheLogSpeedUp) {
  const auto numbers = describe_batch(
      *batch({{Outcome::OK, 4}, {Outcome::OK, 1}, {Outcome::CRASH, 0}, {Outcome::OK, 1}}));
  EXPECT_DOUBLE_EQ(numbers.at("score"), 1.5);                      // (4 + 1 + 0 + 1) / 4
  EXPECT_DOUBLE_EQ(numbers.at("log_speedup"), std::log(4.0) / 3);  // three are ok
  EXPECT_DOUBLE_EQ(numbers.at("share_ok"), 0.75);
  EXPECT_DOUBLE_EQ(numbers.at("share_crash"), 0.25);
}

}  // namespace
}  // namespace hone
