#include "actors/learner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/timeouts.hpp"
#include "policy/checkpoint.hpp"
#include "tests/support/actor_test.hpp"
#include "tests/support/gpu_lender.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;

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

// A group of the corpus with one document, scored ok on this device type.
group_record corpus_group(const std::string& code, const std::string& device) {
  group_options options;
  options.origin = schema::RolloutGroup::Origin::CORPUS;
  options.device = device;
  return make_group({code}, options);
}

// The test takes the place of the pool, the only generator and the supervisor. The learner's policy
// is scripted: the learner makes steps without training.
class LearnerActor : public actor_test {
 protected:
  LearnerActor() {
    options_.plan.sft.updates = 0;
    options_.plan.self_supervised.steps = 0;
    options_.plan.contrastive.steps = 2;
    options_.plan.contrastive.groups = 3;
    options_.plan.comparison = {0, 0, 0, 0};
    options_.run_folder = folder_.path();
    options_.has_thread_for_writing = false;
    options_.make_curriculum = [this] {
      return std::make_unique<curriculum>(
          options_.plan, nullptr,
          std::make_shared<const prompt_template>(prompt_template::parse("{{task}}\n", "test")),
          tasks_, 1);
    };
  }
  // Lets the learner that start() starts share its GPU. Its curriculum must be made under a lease.
  std::shared_ptr<lender_state> share_the_gpu() {
    auto lender = std::make_shared<lender_state>();
    options_.gpu = leased_gpu(own(system_.spawn(gpu_lender, lender)));
    options_.make_curriculum = [lender, make = options_.make_curriculum] {
      EXPECT_TRUE(lender->is_leased);
      return make();
    };
    return lender;
  }
  void start() {
    learner_ = own(
        system_.spawn(learner_behavior, options_, caf::actor_cast<pool_actor>(me()), me()));
    tell(learner_, join_atom_v);
    settle();
  }

  struct batch_request {
    Stage stage = Stage::SFT;
    std::uint32_t at_least = 0;
    bool is_even = false;
    std::size_t without = 0;
  };
  // Answers the learner's request for a batch and returns the request.
  batch_request give(const batch_record& batch) {
    batch_request request;
    EXPECT_TRUE(take([&](take_atom, std::uint8_t stage, std::uint32_t at_least, std::uint32_t,
                         bool is_even, const std::vector<std::uint64_t>& without) {
      request = {static_cast<Stage>(stage), at_least, is_even, without.size() / 2};
      return batch;
    })) << "no batch was requested";
    return request;
  }
  struct committed {
    version_record version;
    step_record step;
    bool checkpoint_was_there = false;
  };
  // Takes the committed step and acknowledges it.
  committed take_commit() {
    committed c;
    EXPECT_TRUE(take([&](commit_atom, const version_record& version, const step_record& step) {
      const auto checkpoint = options_.run_folder / std::string(view(version->getCheckpoint()));
      c = {version, step, std::filesystem::exists(checkpoint)};
      return done_atom_v;
    })) << "no step was committed";
    return c;
  }
  std::uint64_t next_weights() {
    std::uint64_t version = ~std::uint64_t{0};
    EXPECT_TRUE(take([&](weights_atom, const version_record& v) { version = v->getVersion(); }))
        << "no weights were published";
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
  // Returns whether the run is complete, or nullopt if the learner has not finished.
  std::optional<bool> end() {
    std::optional<bool> complete;
    take([&](finish_atom, bool c) { complete = c; });
    return complete;
  }
  // Takes a committed version and ends the learner before it can publish it.
  void kill_after_commit() {
    EXPECT_TRUE(take([&](commit_atom, const version_record& version, const step_record&) {
      options_.chain = {version};
      caf::anon_send_exit(learner_, caf::exit_reason::kill);
      return done_atom_v;
    })) << "no step was committed";
  }
  void answer_replay() {
    EXPECT_TRUE(take([](replay_atom, std::uint8_t stage) {
      EXPECT_EQ(static_cast<Stage>(stage), Stage::SFT);
      return std::vector<scored_group_record>();
    })) << "the trained groups were not requested";
  }

  temporary_folder folder_;
  task_table tasks_;
  learner_options options_;
  learner_actor learner_;
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

TEST_F(LearnerActor, GivesItsWeightsToTheGeneratorsBeforeItCommitsThem) {
  const auto exchange = std::make_shared<weights_exchange>();
  options_.exchange = exchange;
  options_.make_curriculum = [this] {
    const auto policy = std::filesystem::path(HONE_SOURCE_DIR) / "configs/policies/tiny";
    return std::make_unique<curriculum>(
        options_.plan, std::make_unique<trainer>(policy, true, trainer::options{}),
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

TEST_F(LearnerActor, AStepNamesItsGroupsAndItsParent) {
  start();
  take_commit();
  next_weights();
  const auto a = make_group({"a", "b"});
  const auto b = make_group({"c", "d"});
  const batch_request request = give(batch_of({a, b}));
  EXPECT_EQ(request.stage, Stage::CONTRASTIVE);
  EXPECT_EQ(request.at_least, 3U);
  EXPECT_TRUE(request.is_even);
  const committed second = take_commit();
  EXPECT_TRUE(second.checkpoint_was_there) << "weights are on disk before the version is committed";
  EXPECT_EQ(second.version->getVersion(), 1U);
  EXPECT_EQ(second.version->getParent(), 0U);
  EXPECT_EQ(second.version->getDepth(), 1U);
  ASSERT_EQ(second.step->getGroups().size(), 2U);
  EXPECT_EQ(group_id(second.step->getGroups()[0]), group_id(a->getId()));
  EXPECT_EQ(group_id(second.step->getGroups()[1]), group_id(b->getId()));
  EXPECT_EQ(next_weights(), 1U);
}

TEST_F(LearnerActor, MakesTheNextStepBeforeTheLastOneIsCommitted) {
  options_.plan.contrastive.steps = 3;
  start();
  take_commit();
  next_weights();
  EXPECT_EQ(give(batch_of({make_group({"a"}), make_group({"b"})})).without, 0U);
  // The pool has not acknowledged version 1 yet.
  EXPECT_EQ(give(batch_of({make_group({"c"})})).without, 2U)
      << "the groups of version 1 are still ready, and are trained on";
  EXPECT_EQ(take_commit().version->getVersion(), 1U);
  const committed second = take_commit();
  EXPECT_EQ(second.version->getVersion(), 2U);
  EXPECT_EQ(second.version->getParent(), 1U);
  EXPECT_EQ(second.version->getDepth(), 2U);
  EXPECT_EQ(next_weights(), 1U);
  EXPECT_EQ(next_weights(), 2U);
  EXPECT_EQ(give(batch_of({make_group({"d"})})).without, 3U)
      << "when it was requested, neither was committed";
}

TEST_F(LearnerActor, CommitsTheLastStepOfAStageBeforeTheNextStageBegins) {
  options_.plan.self_supervised.steps = 1;
  start();
  take_commit();
  next_weights();
  give(batch_of({make_group({"a"})}, Stage::SELF_SUPERVISED));
  EXPECT_FALSE(take([](take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool,
                       const std::vector<std::uint64_t>&) -> caf::result<batch_record> {
    return caf::make_error(caf::sec::request_timeout);
  })) << "the pool draws for the stage of the committed version";
  EXPECT_EQ(take_commit().version->getStage(), Stage::CONTRASTIVE);
  EXPECT_EQ(give(batch_of({make_group({"b"})})).stage, Stage::CONTRASTIVE);
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

TEST_F(LearnerActor, WaitsForTheDevicesThatJudgeTheCorpus) {
  options_.plan.sft.updates = 4;
  options_.plan.sft.updates_per_step = 4;
  options_.plan.sft.begin_with = 1;
  options_.awaits_corpus = true;
  start();
  take_commit();
  next_weights();
  advance(timeouts::corpus_poll);
  const auto ends_step = [&] {
    return take([](commit_atom, const version_record&, const step_record&) { return done_atom_v; });
  };
  EXPECT_FALSE(ends_step()) << "no node has brought a device";
  tell(learner_, corpus_atom_v, std::string("late"), std::uint64_t{1});
  advance(timeouts::corpus_poll);
  EXPECT_FALSE(ends_step()) << "its document is not judged";
  give(batch_of({corpus_group("a", "late")}, Stage::SFT));
  advance(timeouts::corpus_poll);
  EXPECT_TRUE(ends_step());
}

TEST_F(LearnerActor, MetricsNameTheirStep) {
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
  give(batch_of({make_group({"a", "b"})}));
  EXPECT_EQ(take_commit().version->getParent(), 0U);
  EXPECT_EQ(lender->leases - before, 3) << "the weights, the work after the replay, and a step";
}

TEST_F(LearnerActor, AStageThatANewConfigurationShortensEndsAtTheResumption) {
  options_.plan.self_supervised.steps = 3;
  start();
  take_commit();
  next_weights();
  give(batch_of({make_group({"a", "b"})}, Stage::SELF_SUPERVISED));
  kill_after_commit();
  EXPECT_EQ(options_.chain.front()->getStage(), Stage::SELF_SUPERVISED);
  options_.next_version = 2;
  options_.plan.self_supervised.steps = 1;
  start();
  answer_replay();
  const committed next = take_commit();
  EXPECT_EQ(next.version->getStage(), Stage::CONTRASTIVE)
      << "the pool draws for the stage of the newest version";
  EXPECT_EQ(next.version->getParent(), 1U);
}

TEST_F(LearnerActor, StopsBetweenSteps) {
  start();
  take_commit();
  next_weights();
  tell(learner_, stop_atom_v);
  EXPECT_EQ(end(), std::optional<bool>(false));
}

TEST_F(LearnerActor, RequestsABatchAgainAfterARefusal) {
  start();
  take_commit();
  next_weights();
  EXPECT_TRUE(take(
      [](take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool,
         const std::vector<std::uint64_t>&) -> caf::result<batch_record> {
        return caf::make_error(caf::sec::request_timeout);
      }));
  EXPECT_EQ(give(batch_of({make_group({"a", "b"})})).stage, Stage::CONTRASTIVE);
  EXPECT_EQ(take_commit().version->getVersion(), 1U);
}

TEST_F(LearnerActor, ReportsACurriculumThatCannotBeMade) {
  options_.make_curriculum = []() -> std::unique_ptr<curriculum> {
    throw std::runtime_error("no such policy");
  };
  start();
  std::string reason;
  EXPECT_TRUE(take([&](fatal_atom, const std::string& why) { reason = why; }));
  EXPECT_THAT(reason, testing::HasSubstr("no such policy"));
}

TEST_F(LearnerActor, BeginsOnceEnoughOfTheCorpusIsJudgedOnOneTypeOfDevice) {
  options_.plan.sft.updates = 4;
  options_.plan.sft.updates_per_step = 4;
  options_.plan.sft.begin_with = 0.5;
  options_.corpus_groups = {{"fast", 4}, {"slow", 40}};
  start();
  take_commit();
  next_weights();
  EXPECT_EQ(give(batch_of({corpus_group("a", "fast")}, Stage::SFT)).stage, Stage::SFT);
  advance(timeouts::corpus_poll);
  EXPECT_FALSE(take([](commit_atom, const version_record&, const step_record&) {
    return done_atom_v;
  })) << "one of four documents is not half of them";
  give(batch_of({corpus_group("b", "fast")}, Stage::SFT));
  advance(timeouts::corpus_poll);
  EXPECT_EQ(take_commit().step->getGroups().size(), 2U);
}

}  // namespace
}  // namespace hone
