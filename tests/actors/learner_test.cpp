#include "actors/learner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/actor_system.hpp"
#include "tests/support/gpu_lender.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;

constexpr auto limit = std::chrono::seconds(20);

batch_record batch_of(const std::vector<group_record>& groups, Stage stage = Stage::CONTRASTIVE) {
  record_builder<schema::TrainingBatch> batch;
  batch->setStage(stage);
  auto list = batch->initGroups(static_cast<unsigned>(groups.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setGroup(*groups[i]);
    auto results = list[i].initResults(groups[i]->getRollouts().size());
    for (auto result : results) result.setOutcome(Outcome::OK);
  }
  return batch.finish();
}

// The test is the pool, the only generator and the supervisor of a learner whose policy is
// scripted: it steps and learns nothing.
class LearnerActor : public testing::Test {
 protected:
  LearnerActor() : system_(actor_settings()), me_(system_) {
    options_.plan.sft.updates = 0;
    options_.plan.self_supervised.steps = 0;
    options_.plan.contrastive.steps = 2;
    options_.plan.contrastive.groups = 3;
    options_.plan.comparison_samples = 0;
    options_.run_folder = folder_.path();
    options_.make_curriculum = [this] {
      return std::make_unique<curriculum>(
          options_.plan, nullptr,
          std::make_shared<const prompt_template>(prompt_template::parse("{{task}}\n", "test")),
          tasks_, 1);
    };
  }
  ~LearnerActor() override {
    for (const auto& a : {caf::actor_cast<caf::actor>(learner_), lender_}) {
      if (a) caf::anon_send_exit(a, caf::exit_reason::kill);
    }
  }
  // From here on, every curriculum is made while the GPU is lent.
  std::shared_ptr<lending> share_the_gpu() {
    auto lent = std::make_shared<lending>();
    lender_ = system_.spawn<caf::detached>(gpu_lender, lent);
    options_.gpu = gpu_lent_by(lender_);
    options_.make_curriculum = [lent, make = options_.make_curriculum] {
      EXPECT_TRUE(lent->is_lent);
      return make();
    };
    return lent;
  }
  void start() {
    const auto me = caf::actor_cast<caf::actor>(me_);
    learner_ =
        system_.spawn(learner, options_, caf::actor_cast<pool_actor>(me),
                      std::vector<generator_actor>{caf::actor_cast<generator_actor>(me)}, me);
  }

  // What the learner asks of the pool next, and the answer.
  struct wish {
    Stage stage = Stage::SFT;
    std::uint32_t at_least = 0;
    bool is_even = false;
  };
  wish give(const batch_record& batch) {
    wish w;
    me_->receive(
        [&](take_atom, std::uint8_t stage, std::uint32_t at_least, std::uint32_t, bool is_even) {
          w = {static_cast<Stage>(stage), at_least, is_even};
          return batch;
        },
        caf::after(limit) >> [] { ADD_FAILURE() << "the learner asks for nothing"; });
    return w;
  }
  struct committed {
    version_record version;
    step_record step;
    bool checkpoint_was_there = false;
  };
  committed take_commit() {
    committed c;
    me_->receive(
        [&](commit_atom, const version_record& version, const step_record& step) {
          c = {version, step,
               std::filesystem::exists(options_.run_folder /
                                       std::string(view(version->getCheckpoint())))};
          return done_atom_v;
        },
        caf::after(limit) >> [] { ADD_FAILURE() << "no step is committed"; });
    return c;
  }
  std::uint64_t next_weights() {
    std::uint64_t version = ~std::uint64_t{0};
    me_->receive([&](weights_atom, const version_record& v) { version = v->getVersion(); },
                 caf::after(limit) >> [] { ADD_FAILURE() << "no weights are published"; });
    return version;
  }
  void expect_two_steps_and_the_end() {
    take_commit();
    next_weights();
    for (int step = 0; step < 2; ++step) {
      give(batch_of({make_group({"a", "b"})}));
      take_commit();
      next_weights();
    }
    EXPECT_TRUE(take_commit().version->getComplete());
    next_weights();
    EXPECT_EQ(end(), std::optional<bool>(true));
  }
  std::optional<bool> end() {
    std::optional<bool> complete;
    me_->receive([&](finish_atom, bool c) { complete = c; }, caf::after(limit) >> [] {});
    return complete;
  }

  temporary_folder folder_;
  task_table tasks_;
  caf::actor_system system_;
  caf::scoped_actor me_;
  learner_options options_;
  learner_actor learner_;
  caf::actor lender_;
};

TEST_F(LearnerActor, ANewRunCommitsItsFirstWeightsAndPublishesThem) {
  start();
  const committed first = take_commit();
  EXPECT_EQ(first.version->getVersion(), 0U);
  EXPECT_EQ(first.version->getParent(), 0U);
  EXPECT_EQ(first.version->getStage(), Stage::CONTRASTIVE) << "stages without steps are skipped";
  EXPECT_TRUE(first.checkpoint_was_there);
  EXPECT_EQ(first.step->getGroups().size(), 0U);
  EXPECT_EQ(next_weights(), 0U);
}

TEST_F(LearnerActor, AStepNamesWhatItConsumedAndWhatItCameFrom) {
  start();
  take_commit();
  next_weights();
  const auto a = make_group({"a", "b"});
  const auto b = make_group({"c", "d"});
  const wish w = give(batch_of({a, b}));
  EXPECT_EQ(w.stage, Stage::CONTRASTIVE);
  EXPECT_EQ(w.at_least, 3U);
  EXPECT_TRUE(w.is_even);
  const committed second = take_commit();
  EXPECT_TRUE(second.checkpoint_was_there) << "a version is named when its weights are on disk";
  EXPECT_EQ(second.version->getVersion(), 1U);
  EXPECT_EQ(second.version->getParent(), 0U);
  EXPECT_EQ(second.version->getDepth(), 1U);
  ASSERT_EQ(second.step->getGroups().size(), 2U);
  EXPECT_EQ(group_id(second.step->getGroups()[0]), group_id(a->getId()));
  EXPECT_EQ(group_id(second.step->getGroups()[1]), group_id(b->getId()));
  EXPECT_EQ(next_weights(), 1U);
}

TEST_F(LearnerActor, MetricsStandUnderTheStepThatTheyAreOf) {
  std::vector<std::string> lines;
  options_.metrics = [&](const version_record& version, const learned_step& learned) {
    lines.push_back(std::to_string(version->getVersion()) + " " +
                    std::string(name_of(learned.stage)) + " " + std::to_string(learned.step));
  };
  start();
  expect_two_steps_and_the_end();
  EXPECT_THAT(lines, testing::ElementsAre("0 contrastive 0", "1 contrastive 1", "2 contrastive 2",
                                          "3 comparison 1"));
}

TEST_F(LearnerActor, IsCompleteAfterItsLastStep) {
  start();
  expect_two_steps_and_the_end();
}

TEST_F(LearnerActor, StopsBeforeItsFirstTurn) {
  const auto lent = share_the_gpu();
  lent->refusals = 1000000;
  start();
  me_->send(learner_, stop_atom_v);
  EXPECT_EQ(end(), std::optional<bool>(false));
}

TEST_F(LearnerActor, OnASharedGpuLearnsInItsTurns) {
  const auto lent = share_the_gpu();
  start();
  expect_two_steps_and_the_end();
  EXPECT_EQ(lent->turns, 4) << "its start, two steps, the last checkpoint";
}

TEST_F(LearnerActor, OnASharedGpuWritesItsCheckpointsBetweenTurns) {
  share_the_gpu();
  std::vector<std::ptrdiff_t> on_disk;  // at the end of each turn
  options_.gpu.finish = [&] {
    const auto checkpoints = options_.run_folder / "checkpoints";
    on_disk.push_back(std::filesystem::exists(checkpoints)
                          ? std::distance(std::filesystem::directory_iterator(checkpoints), {})
                          : 0);
  };
  start();
  expect_two_steps_and_the_end();
  EXPECT_EQ(on_disk, (std::vector<std::ptrdiff_t>{0, 1, 2, 3}))
      << "each turn's own comes behind it";
}

TEST_F(LearnerActor, OnASharedGpuTrainsInItsTurns) {
  options_.plan.sft.updates = 2;
  options_.plan.sft.updates_per_step = 1;
  options_.plan.contrastive.steps = 0;
  const auto lent = share_the_gpu();
  start();
  take_commit();
  next_weights();
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(take_commit().step->getStage(), Stage::SFT);
    next_weights();
  }
  EXPECT_TRUE(take_commit().version->getComplete());
  EXPECT_EQ(lent->turns, 4) << "its start, two slices, the last checkpoint";
}

TEST_F(LearnerActor, ARunGoesOnOnASharedGpu) {
  const auto lent = share_the_gpu();
  start();
  me_->receive(
      [&](commit_atom, const version_record& version, const step_record&) {
        options_.chain = {version};
        caf::anon_send_exit(learner_, caf::exit_reason::kill);  // before it hears that it may go on
        return done_atom_v;
      },
      caf::after(limit) >> [] { FAIL() << "no weights are committed"; });
  options_.next_version = 1;
  const int before = lent->turns;
  start();
  me_->receive(
      [&](replay_atom, std::uint8_t stage) {
        EXPECT_EQ(static_cast<Stage>(stage), Stage::SFT);
        return std::vector<scored_group_record>();
      },
      caf::after(limit) >> [] { FAIL() << "it does not ask what it was trained on"; });
  give(batch_of({make_group({"a", "b"})}));
  EXPECT_EQ(take_commit().version->getParent(), 0U);
  EXPECT_EQ(lent->turns - before, 3) << "its weights, what follows from the replay, a step";
}

TEST_F(LearnerActor, AStageThatIsOverByNewSettingsEndsWhenTheRunGoesOn) {
  options_.plan.self_supervised.steps = 3;
  start();
  take_commit();
  next_weights();
  give(batch_of({make_group({"a", "b"})}, Stage::SELF_SUPERVISED));
  me_->receive(
      [&](commit_atom, const version_record& version, const step_record&) {
        EXPECT_EQ(version->getStage(), Stage::SELF_SUPERVISED);
        options_.chain = {version};
        caf::anon_send_exit(learner_, caf::exit_reason::kill);
        return done_atom_v;
      },
      caf::after(limit) >> [] { FAIL() << "no step is committed"; });
  options_.next_version = 2;
  options_.plan.self_supervised.steps = 1;
  start();
  me_->receive([&](replay_atom, std::uint8_t) { return std::vector<scored_group_record>(); },
               caf::after(limit) >> [] { FAIL() << "it does not ask what it was trained on"; });
  const committed next = take_commit();
  EXPECT_EQ(next.version->getStage(), Stage::CONTRASTIVE)
      << "the pool draws for the stage of the newest version";
  EXPECT_EQ(next.version->getParent(), 1U);
}

TEST_F(LearnerActor, StopsBetweenStepsWhenItIsAsked) {
  start();
  take_commit();
  next_weights();
  me_->send(learner_, stop_atom_v);
  EXPECT_EQ(end(), std::optional<bool>(false));
}

TEST_F(LearnerActor, AskedTooLongItAsksAgain) {
  start();
  take_commit();
  next_weights();
  me_->receive(
      [](take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool) -> caf::result<batch_record> {
        return caf::make_error(caf::sec::request_timeout);
      },
      caf::after(limit) >> [] { FAIL() << "the learner asks for nothing"; });
  EXPECT_EQ(give(batch_of({make_group({"a", "b"})})).stage, Stage::CONTRASTIVE);
  EXPECT_EQ(take_commit().version->getVersion(), 1U);
}

TEST_F(LearnerActor, WhatMakesNoPlanIsReported) {
  options_.make_curriculum = []() -> std::unique_ptr<curriculum> {
    throw std::runtime_error("no such policy");
  };
  start();
  std::string reason;
  me_->receive([&](fatal_atom, const std::string& why) { reason = why; },
               caf::after(limit) >> [] { FAIL() << "nobody hears of it"; });
  EXPECT_THAT(reason, testing::HasSubstr("no such policy"));
}

}  // namespace
}  // namespace hone
