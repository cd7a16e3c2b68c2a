// Tests of the versions that the learner makes: when they are handed over, written and
// committed.

#include <fstream>

#include "messages/names.hpp"
#include "tests/support/learner_bed.hpp"
#include "tests/support/policy_folders.hpp"

namespace hone {
namespace {

using namespace testing_support;

TEST_F(LearnerActor, GivesItsWeightsToTheGeneratorsBeforeItCommitsThem) {
  const auto exchange = std::make_shared<weights_exchange>();
  options_.exchange = exchange;
  options_.make_curriculum = [this] {
    return std::make_unique<curriculum>(
        options_.plan, std::make_unique<trainer>(tiny, true, trainer::options{}),
        std::make_shared<const prompt_template>(prompt_template::parse("{{task}}\n", "test")),
        tasks_, 1);
  };
  start();
  EXPECT_EQ(next_weights(), 0U);
  const auto offer = exchange->find(0);
  ASSERT_TRUE(offer);
  EXPECT_GT(offer->weights->parameters(), 0);
  EXPECT_FALSE(exchange->find(1));
  EXPECT_EQ(take_commit().version->getVersion(), 0U);
  EXPECT_EQ(next_weights(), 0U) << "the committed version is published as well";
}

TEST_F(LearnerActor, MakesTheNextStepBeforeTheLastOneIsCommitted) {
  options_.plan.contrastive.steps = 3;
  start();
  take_commit();
  next_weights();
  EXPECT_EQ(give(judged_batch({make_group({"a"}), make_group({"b"})})).without, 0U);
  // The pool has not acknowledged version 1 yet.
  EXPECT_EQ(give(judged_batch({make_group({"c"})})).without, 2U)
      << "the groups of version 1 are still ready, and are trained on";
  EXPECT_EQ(take_commit().version->getVersion(), 1U);
  const committed second = take_commit();
  EXPECT_EQ(second.version->getVersion(), 2U);
  EXPECT_EQ(second.version->getParent(), 1U);
  EXPECT_EQ(second.version->getDepth(), 2U);
  EXPECT_EQ(next_weights(), 1U);
  EXPECT_EQ(next_weights(), 2U);
  EXPECT_EQ(give(judged_batch({make_group({"d"})})).without, 3U)
      << "when it was requested, neither was committed";
}

TEST_F(LearnerActor, CommitsTheLastStepOfAStageBeforeTheNextStageBegins) {
  options_.plan.self_supervised.steps = 1;
  start();
  take_commit();
  next_weights();
  give(judged_batch({make_group({"a"})}, Stage::SELF_SUPERVISED));
  EXPECT_FALSE(take([](take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool,
                       const std::vector<std::uint64_t>&) -> caf::result<batch_record> {
    return caf::make_error(caf::sec::request_timeout);
  })) << "the pool draws for the stage of the committed version";
  EXPECT_EQ(take_commit().version->getStage(), Stage::CONTRASTIVE);
  EXPECT_EQ(give(judged_batch({make_group({"b"})})).stage, Stage::CONTRASTIVE);
}

TEST_F(LearnerActor, AnnouncesVersionsToGeneratorsThatComeLater) {
  start();
  take_commit();
  next_weights();
  tell(learner_, join_atom_v);
  EXPECT_FALSE(take([](weights_atom, const version_record&) {})) << "it is known already";
  caf::scoped_actor other(system_);
  other->send(learner_, join_atom_v);
  settle();
  std::uint64_t version = ~std::uint64_t{0};
  other->receive([&](weights_atom, const version_record& v) { version = v->getVersion(); },
                 caf::after(std::chrono::seconds(0)) >> [] {});
  EXPECT_EQ(version, 0U);
}

class HeldOutVersions : public LearnerActor {
 protected:
  // Makes six steps of supervised fine-tuning, and returns the versions that write for held-out
  // tasks.
  std::vector<std::uint64_t> compared() {
    options_.plan.sft.updates = 6;
    options_.plan.sft.updates_per_step = 1;
    options_.plan.contrastive.steps = 0;
    options_.plan.comparison.held_out_samples = 5;
    options_.plan.comparison.tasks = 7;
    options_.plan.comparison.curve = 2;
    options_.keep_checkpoints = 1;
    start();
    for (int version = 0; version <= 6; ++version) {
      take_commit();
      next_weights();
    }
    std::vector<std::uint64_t> held_out;
    EXPECT_TRUE(take([&](compare_atom, const comparison_record& request) {
      EXPECT_EQ(request->getVersions().size(), 0U);
      for (const std::uint64_t version : request->getHeldOutVersions()) {
        held_out.push_back(version);
        EXPECT_TRUE(std::filesystem::exists(options_.run_folder / checkpoint_name(version)));
      }
      EXPECT_EQ(request->getHeldOutSamples(), 5U);
      EXPECT_EQ(request->getTasks(), 7U);
      return std::uint32_t{0};  // there are no held-out tasks
    }));
    return held_out;
  }
};

TEST_F(HeldOutVersions, AreComparedWithoutAContrastiveStage) {
  EXPECT_THAT(compared(), testing::ElementsAre(0U, 2U, 4U, 6U));
  EXPECT_FALSE(std::filesystem::exists(options_.run_folder / checkpoint_name(3)));
  EXPECT_TRUE(take_commit().version->getComplete());
  next_weights();
  EXPECT_EQ(end(), std::optional<bool>(true));
}

TEST_F(HeldOutVersions, DoNotBeginWithRandomWeights) {
  options_.begins_random = true;
  EXPECT_THAT(compared(), testing::ElementsAre(2U, 4U, 6U));
  EXPECT_FALSE(std::filesystem::exists(options_.run_folder / checkpoint_name(0)));
}

TEST_F(LearnerActor, CanBeStoppedBeforeItsFirstLease) {
  const auto lender = share_the_gpu();
  lender->refusals = 1000000;
  start();
  tell(learner_, stop_atom_v);
  EXPECT_EQ(end(), std::optional<bool>(false));
}

TEST_F(LearnerActor, OnASharedGpuLearnsUnderLeases) {
  const auto lender = share_the_gpu();
  start();
  expect_two_steps_and_the_end();
  EXPECT_EQ(lender->leases, 4) << "the start, two steps and the last checkpoint";
}

TEST_F(LearnerActor, OnASharedGpuRequestsNothingWhileABatchWaitsForItsLease) {
  const auto lender = share_the_gpu();
  start();
  take_commit();
  next_weights();
  lender->refusals = 1;
  give(judged_batch({make_group({"a"})}));
  tell(learner_, tick_atom_v);
  EXPECT_FALSE(take([](take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool,
                       const std::vector<std::uint64_t>&) -> caf::result<batch_record> {
    return caf::make_error(caf::sec::request_timeout);
  })) << "the pool would give the same groups again";
  advance(timeouts::gpu_lease_retry);
  EXPECT_EQ(take_commit().version->getVersion(), 1U);
}

TEST_F(LearnerActor, ReportsACheckpointThatCannotBeWritten) {
  start();
  take_commit();
  next_weights();
  std::filesystem::remove_all(options_.run_folder / "checkpoints");
  std::ofstream(options_.run_folder / "checkpoints") << "no folder";
  give(judged_batch({make_group({"a"})}));
  std::string reason;
  EXPECT_TRUE(take([&](fatal_atom, const std::string& why) { reason = why; }));
  EXPECT_THAT(reason, testing::HasSubstr("checkpoints"));
}

TEST_F(LearnerActor, OnASharedGpuWritesCheckpointsBetweenLeases) {
  share_the_gpu();
  std::vector<std::ptrdiff_t> on_disk;  // at the end of each lease
  options_.gpu.finish = [&] {
    const auto checkpoints = options_.run_folder / "checkpoints";
    on_disk.push_back(std::filesystem::exists(checkpoints)
                          ? std::distance(std::filesystem::directory_iterator(checkpoints), {})
                          : 0);
  };
  start();
  expect_two_steps_and_the_end();
  EXPECT_EQ(on_disk, (std::vector<std::ptrdiff_t>{0, 1, 2, 3}))
      << "a checkpoint is written after the lease that took it";
}

TEST_F(LearnerActor, OnASharedGpuFineTunesUnderLeases) {
  options_.plan.sft.updates = 2;
  options_.plan.sft.updates_per_step = 1;
  options_.plan.contrastive.steps = 0;
  const auto lender = share_the_gpu();
  start();
  take_commit();
  next_weights();
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(take_commit().step->getStage(), Stage::SFT);
    next_weights();
  }
  EXPECT_TRUE(take_commit().version->getComplete());
  EXPECT_EQ(lender->leases, 4) << "the start, two slices and the last checkpoint";
}

TEST_F(LearnerActor, ARunResumesOnASharedGpu) {
  const auto lender = share_the_gpu();
  start();
  kill_after_commit();
  options_.next_version = 1;
  const int before = lender->leases;
  start();
  answer_replay();
  give(judged_batch({make_group({"a", "b"})}));
  EXPECT_EQ(take_commit().version->getParent(), 0U);
  EXPECT_EQ(lender->leases - before, 3) << "the weights, the work after the replay, and a step";
}

}  // namespace
}  // namespace hone
