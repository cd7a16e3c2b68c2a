// Tests of what the learner asks the pool for, and when it ends.

#include "messages/names.hpp"
#include "tests/support/learner_bed.hpp"

namespace hone {
namespace {

using namespace testing_support;

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

TEST_F(LearnerActor, AStepNamesItsGroupsAndItsParent) {
  start();
  take_commit();
  next_weights();
  const auto a = make_group({"a", "b"});
  const auto b = make_group({"c", "d"});
  const batch_request request = give(judged_batch({a, b}));
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

TEST_F(LearnerActor, AStepReplacesGroupsWhoseRewardsDoNotDiffer) {
  options_.plan.contrastive.max_groups = 4;
  start();
  take_commit();
  next_weights();
  give(judged_batch({make_group({"a", "b"}), make_group({"c", "d"})}));
  const batch_request more = give(judged_batch({make_group({"e", "f"}), make_group({"g", "h"})}));
  EXPECT_EQ(more.stage, Stage::CONTRASTIVE);
  EXPECT_EQ(more.at_least, 2U);
  EXPECT_EQ(more.without, 2U) << "the groups that the step has already";
  EXPECT_EQ(take_commit().step->getGroups().size(), 4U);
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
  give(judged_batch({corpus_group("a", "late")}, Stage::SFT));
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

TEST_F(LearnerActor, AStageThatANewConfigurationShortensEndsAtTheResumption) {
  options_.plan.self_supervised.steps = 3;
  start();
  take_commit();
  next_weights();
  give(judged_batch({make_group({"a", "b"})}, Stage::SELF_SUPERVISED));
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
  EXPECT_TRUE(take([](take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool,
                      const std::vector<std::uint64_t>&) -> caf::result<batch_record> {
    return caf::make_error(caf::sec::request_timeout);
  }));
  EXPECT_EQ(give(judged_batch({make_group({"a", "b"})})).stage, Stage::CONTRASTIVE);
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
  EXPECT_EQ(give(judged_batch({corpus_group("a", "fast")}, Stage::SFT)).stage, Stage::SFT);
  advance(timeouts::corpus_poll);
  EXPECT_FALSE(take([](commit_atom, const version_record&, const step_record&) {
    return done_atom_v;
  })) << "one of four documents is not half of them";
  give(judged_batch({corpus_group("b", "fast")}, Stage::SFT));
  advance(timeouts::corpus_poll);
  EXPECT_EQ(take_commit().step->getGroups().size(), 2U);
}

TEST_F(LearnerActor, LearnsFromAStreamWithoutWaitingForItsSample) {
  options_.plan.sft.updates = options_.plan.sft.updates_per_step = 4;
  options_.plan.sft.begin_with = 1;
  options_.corpus_groups = {{"fast", 200}};
  options_.streams = true;
  start();
  take_commit();
  next_weights();
  EXPECT_EQ(take_commit().step->getStage(), Stage::SFT) << "nothing of the sample is judged";
}

TEST_F(LearnerActor, AStepReportsTheValidationThatEndedBeforeIt) {
  options_.plan.validation = {0.001, 5};
  options_.tasks = std::make_shared<const task_table>();
  std::vector<double> reported;
  options_.metrics = [&](const version_record&, const learned_step& learned) {
    const auto found = learned.numbers.find("validation_ok");
    reported.push_back(found == learned.numbers.end() ? -1 : found->second);
  };
  start();
  take_commit();
  next_weights();
  advance(std::chrono::seconds(1));
  give(judged_batch({make_group({"a", "b"})}));
  take_commit();
  EXPECT_TRUE(take([&](validate_atom, std::uint32_t tasks) {
    EXPECT_EQ(tasks, 5U);
    return judged_batch({make_group({"x"}), make_group({"y"})}, Stage::VALIDATION);
  })) << "the newest version is validated";
  next_weights();
  give(judged_batch({make_group({"c", "d"})}));
  take_commit();
  EXPECT_THAT(reported, testing::ElementsAre(-1, -1, 1));
}

TEST_F(LearnerActor, AsksForAComparisonAgainThatHadNoDevice) {
  options_.plan.contrastive.steps = 0;
  options_.plan.comparison.held_out_samples = 1;
  start();
  take_commit();
  next_weights();
  const auto refuse = [](compare_atom, const comparison_record&) -> caf::result<std::uint32_t> {
    return caf::make_error(caf::sec::request_timeout);
  };
  EXPECT_TRUE(take(refuse));
  EXPECT_FALSE(end()) << "it is not complete without its groups";
  advance(timeouts::comparison_retry);
  EXPECT_TRUE(take(refuse));
}

// Counts documents of a stream, of which this many are wrong, and then one more that could not be
// judged.
stream_sample counted(int documents, int wrong) {
  stream_sample sample;
  const batch_record batch = judged_batch({corpus_group("a", "fast")}, Stage::SFT);
  record_builder<schema::TrainingBatch> other(*batch);
  const auto result = [&](Outcome outcome) {
    other->getGroups()[0].getResults()[0].setOutcome(outcome);
    sample.count(other->getGroups()[0].asReader());
  };
  for (int i = 0; i < documents; ++i) result(i < wrong ? Outcome::WRONG_RESULT : Outcome::OK);
  result(Outcome::INFRASTRUCTURE);
  return sample;
}

TEST(StreamSample, EndsTheRunIfMoreThanOnePercentIsWrong) {
  EXPECT_EQ(counted(99, 50).wrong, 50U) << "too few to tell";
  EXPECT_EQ(counted(200, 1).documents, 200U);
  try {
    counted(100, 2);
    ADD_FAILURE() << "2 % is too much";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("2 of 100 documents of the stream"));
  }
}

}  // namespace
}  // namespace hone
