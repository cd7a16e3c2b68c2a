// Tests the pool's durable state and its output: reopening, steps, branches, batches, comparisons,
// draws.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

TEST(PoolCreation, LeavesAWholePoolOrNone) {
  const testing_support::temporary_folder folder;
  pool_options options;
  options.folder = folder / "pool";
  options.judge_version = 1;
  // The files of a process that was killed while it made a pool.
  std::filesystem::create_directories(folder / "pool.unfinished");
  std::ofstream(folder / "pool.unfinished" / "CURRENT") << "MANIFEST-000001\n";
  { const pool made(options); }
  EXPECT_FALSE(std::filesystem::exists(folder / "pool.unfinished"));
  EXPECT_FALSE(pool_inspector(folder / "pool").versions().head());
}

using namespace testing_support;
using testing::HasSubstr;

TEST_F(PoolTest, EverythingAcknowledgedSurvivesReopening) {
  first_version();
  const auto jobs = submit(make_group({"a", "b"}));
  finish(*jobs[0], 2.0);
  open();
  EXPECT_EQ(pool_->waiting_groups(), 1U);
  jobs_list again;
  pool_->collect_overdue(now_, again);
  ASSERT_FALSE(again.empty());
  for (const auto& job : again)
    EXPECT_EQ(job->getHeader().getAttempt(), 1U) << "a restart does not count as an attempt";
  finish_all(again, 2.0);
  EXPECT_TRUE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  const auto report = verify();
  EXPECT_EQ(report.checked.at("variants"), 2U);
  EXPECT_EQ(report.checked.at("groups"), 1U);
}

TEST_F(PoolTest, UncommittedChangesAreLostOnReopening) {
  jobs_list jobs;
  pool_->record_group(make_group({"a"}), now_, jobs);
  open();
  EXPECT_EQ(pool_->in_flight(), 0U);
}

TEST_F(PoolTest, StepConsumesItsGroupsOnce) {
  first_version();
  const auto group = make_group({"a"});
  finish_all(submit(group), 2.0);
  const group_id id(group->getId());
  pool_->commit_step(make_version(1, 0, 1), make_step(1, 0, {id}));
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  EXPECT_THROW(pool_->commit_step(make_version(2, 1, 2), make_step(2, 1, {id})), pool_error);
  EXPECT_THROW(pool_->commit_step(make_version(1, 0, 1), make_step(1, 0, {})), pool_error)
      << "numbers are never reused";
}

TEST_F(PoolTest, GroupsOfAnAbandonedBranchAreReadyAgain) {
  first_version();
  const auto first = make_group({"a"});
  const auto second = make_group({"b"});
  finish_all(submit(first), 2.0);
  finish_all(submit(second), 2.0);
  pool_->commit_step(make_version(1, 0, 1), make_step(1, 0, {group_id(first->getId())}));
  pool_->commit_step(make_version(2, 1, 2), make_step(2, 1, {group_id(second->getId())}));
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 0U);
  pool_->choose_branch(1);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 1U);
  const auto batch = pool_->take({Stage::CONTRASTIVE, 1, 1});
  ASSERT_TRUE(batch);
  EXPECT_EQ(group_id((*batch)->getGroups()[0].getGroup().getId()), group_id(second->getId()));
  EXPECT_EQ(pool_->next_version(), 3U);
  pool_->commit_step(make_version(3, 1, 2), make_step(3, 1, {group_id(second->getId())}));
  open();
  EXPECT_EQ(pool_->versions().head(), 3U);
  verify();
}

TEST_F(PoolTest, GroupsWithTooMuchLagAlongTheChainAreDropped) {
  first_version();
  group_options options;
  options.version = 0;
  finish_all(submit(make_group({"a"}, options)), 2.0);
  for (std::uint64_t v = 1; v <= 3; ++v)
    pool_->commit_step(make_version(v, v - 1, static_cast<std::uint32_t>(v)),
                       make_step(v, v - 1, {}));
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  EXPECT_EQ(pool_->dropped_groups().at(the_device()), 1U);
}

TEST_F(PoolTest, GroupsOfAVersionThatIsNotCommittedYetAreKept) {
  first_version();
  group_options options;
  options.version = 1;
  const auto group = make_group({"a"}, options);
  finish_all(submit(group), 2.0);
  EXPECT_TRUE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  EXPECT_TRUE(pool_->dropped_groups().empty());
  // The run was killed before it committed version 1, and goes on with version 2. So it does if it
  // is killed again before a group names another.
  for (int i = 0; i < 2; ++i) {
    open();
    pool_.reset();
    EXPECT_EQ(pool_inspector(folder_ / "pool").next_version(), 2U);
    open();
  }
  pool_->commit_step(make_version(2, 0, 1), make_step(2, 0, {}));
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  EXPECT_EQ(pool_->dropped_groups().at(the_device()), 1U);
  verify();
}

TEST_F(PoolTest, ADeviceTypeMayHaveALagBoundOfItsOwn) {
  max_lag_of_ = {{"slow", 3}, {"slow-but", 1}};
  open();
  first_version();
  for (const char* device : {"slow-a", "slow-but-b", "fast"}) {
    pool_->add_device_type(make_device_type(device));
    group_options options;
    options.device = device;
    finish_all(submit(make_group({device}, options)), 2.0);
  }
  const auto step_to = [&](std::uint64_t v) {
    pool_->commit_step(make_version(v, v - 1, static_cast<std::uint32_t>(v)),
                       make_step(v, v - 1, {}));
  };
  for (const std::uint64_t v : {1, 2, 3}) step_to(v);
  const auto batch = pool_->take({Stage::CONTRASTIVE, 1, 9});
  ASSERT_TRUE(batch);
  ASSERT_EQ((*batch)->getGroups().size(), 1U);
  EXPECT_EQ(view((*batch)->getGroups()[0].getGroup().getDraw().getDeviceType()), "slow-a");
  EXPECT_THAT(pool_->dropped_groups(),
              testing::ElementsAre(testing::Pair("fast", 1), testing::Pair("slow-but-b", 1)));
  step_to(4);
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 9}));
  EXPECT_EQ(pool_->dropped_groups().at("slow-a"), 1U);
}

TEST_F(PoolTest, GroupsOfTheCorpusAreCountedApartWhileTheyWait) {
  first_version();
  group_options corpus;
  corpus.origin = schema::RolloutGroup::Origin::CORPUS;
  const auto of_corpus = submit(make_group({"a"}, corpus));
  const auto jobs = submit(make_group({"b"}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pool_->waiting_groups(), 2U);
    EXPECT_EQ(pool_->waiting_drawn_groups(), 1U);
    EXPECT_TRUE(pool_->awaits_corpus(the_task(), the_device()));
    EXPECT_FALSE(pool_->awaits_corpus(the_task(), "another type"));
    EXPECT_FALSE(pool_->awaits_corpus({77, 7}, the_device()));
    open();  // the numbers are the same after a restart
  }
  finish_all(jobs, 2.0);
  EXPECT_EQ(pool_->waiting_drawn_groups(), 0U);
  EXPECT_EQ(pool_->waiting_groups(), 1U);
  EXPECT_TRUE(pool_->awaits_corpus(the_task(), the_device())) << "draws do not count";
  finish_all(of_corpus, 2.0);
  EXPECT_FALSE(pool_->awaits_corpus(the_task(), the_device()));
}

TEST_F(PoolTest, ABatchSaysHowFastItsVariantsAreBesideEveryBaseline) {
  first_version();
  const auto jobs = submit(make_group({"a"}));
  record_builder<schema::Evaluation> result(*make_result(*jobs[0], 4.0));
  auto timed = result->getMeasurements()[0].initCases(1)[0];
  auto baselines = timed.initBaselines(2);
  baselines[0].setName("eager");
  baselines[0].setUs(100);
  baselines[1].setName("graph");
  baselines[1].setUs(50);
  jobs_list more;
  pool_->record_evaluation(result.finish(), now_, more);
  pool_->commit();
  const auto batch = pool_->take({Stage::CONTRASTIVE, 1, 1});
  ASSERT_TRUE(batch);
  std::map<std::string, double> over;
  for (const auto one : (*batch)->getGroups()[0].getResults()[0].getSpeedupsOver())
    over[one.getName()] = one.getValue();
  EXPECT_THAT(over, testing::ElementsAre(testing::Pair("eager", testing::DoubleNear(4, 1e-9)),
                                         testing::Pair("graph", testing::DoubleNear(2, 1e-9))));
}

TEST_F(PoolTest, BatchKeepsTheMaximumNumberOfGroupsPerTask) {
  first_version();
  finish_all(submit(make_group({"a"})), 2.0);
  finish_all(submit(make_group({"b"})), 2.0);
  EXPECT_TRUE(pool_->take({Stage::CONTRASTIVE, 2, 2}));
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 2, 2, 1}));
  EXPECT_TRUE(pool_->take({Stage::CONTRASTIVE, 2, 2, 2}));
}

TEST_F(PoolTest, TasksTakeTurnsInAnEvenBatch) {
  first_version();
  group_options other;
  other.task = {8, 8};
  const std::vector<record<schema::RolloutGroup>> groups = {
      make_group({"a"}), make_group({"b"}), make_group({"c"}), make_group({"d"}, other)};
  for (const auto& group : groups) finish_all(submit(group), 2.0);
  const auto batch = pool_->take({Stage::CONTRASTIVE, 3, 3, 2});
  ASSERT_TRUE(batch);
  std::vector<group_id> taken;
  for (const auto scored : (*batch)->getGroups()) taken.emplace_back(scored.getGroup().getId());
  EXPECT_THAT(taken,
              testing::ElementsAre(group_id(groups[0]->getId()), group_id(groups[3]->getId()),
                                   group_id(groups[1]->getId())));
}

TEST_F(PoolTest, ComparisonIsJudgedAfreshAndDoesNotChangeExemplars) {
  finish_all(submit(make_group({"a"})), 2.0);
  group_options options;
  options.origin = schema::RolloutGroup::Origin::COMPARISON;
  options.stage = Stage::COMPARISON;
  const auto jobs = submit(make_group({"a"}, options));
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_FALSE(jobs[0]->getHeader().getVerified());
  finish_all(jobs, 7.0);
  EXPECT_EQ(score_of("a"), 2.0);
  EXPECT_EQ(pool_->best(the_task(), the_device())->score, 2.0);
}

TEST_F(PoolTest, DrawHasExemplarsWithCodeAndScoresInAscendingOrder) {
  finish_all(submit(make_group({"slow"})), 1.0);
  finish_all(submit(make_group({"fast"})), 8.0);
  const auto draw = pool_->draw({the_task(), the_device(), Stage::CONTRASTIVE, 0, 4});
  ASSERT_EQ(draw->getExemplars().size(), 2U);
  EXPECT_EQ(view(draw->getExemplars()[0].getPython()), "slow");
  EXPECT_EQ(view(draw->getExemplars()[1].getPython()), "fast");
  EXPECT_EQ(draw->getExemplars()[1].getScore(), 8.0);
  EXPECT_EQ(
      pool_->draw({the_task(), "another-device", Stage::CONTRASTIVE, 0, 4})->getExemplars().size(),
      0U);
}

TEST_F(PoolTest, AComparisonShowsWhatWasKnownBeforeTheContrastiveStage) {
  const auto shown = [&](Stage stage) {
    std::vector<std::string> programs;
    const auto draw = pool_->draw({the_task(), the_device(), stage, 0, 4});
    for (const auto one : draw->getExemplars()) programs.emplace_back(view(one.getPython()));
    return programs;
  };
  pool_->commit_step(make_version(0, 0, 0, Stage::SFT), make_step(0, 0, {}, Stage::SFT));
  finish_all(submit(make_group({"known"})), 2.0);
  EXPECT_THAT(shown(Stage::COMPARISON), testing::ElementsAre("known"));
  pool_->commit_step(make_version(1, 0, 1, Stage::CONTRASTIVE), make_step(1, 0, {}, Stage::SFT));
  finish_all(submit(make_group({"found"})), 9.0);
  EXPECT_THAT(shown(Stage::CONTRASTIVE), testing::ElementsAre("known", "found"));
  EXPECT_THAT(shown(Stage::COMPARISON), testing::ElementsAre("known"))
      << "the policy of before would be shown what the one of after has found";
  verify();
}

// Such a run has no stage before the contrastive one, which begins while the corpus is judged.
TEST_F(PoolTest, AComparisonShowsTheCorpusWheneverItWasJudged) {
  group_options corpus;
  corpus.origin = schema::RolloutGroup::Origin::CORPUS;
  const auto early = submit(make_group({"early"}, corpus));
  const auto late = submit(make_group({"late"}, corpus));
  finish_all(early, 2.0);
  pool_->commit_step(make_version(0, 0, 0, Stage::CONTRASTIVE),
                     make_step(0, 0, {}, Stage::CONTRASTIVE));
  finish_all(submit(make_group({"found"})), 9.0);
  finish_all(late, 4.0);
  const auto draw = pool_->draw({the_task(), the_device(), Stage::COMPARISON, 0, 4});
  ASSERT_EQ(draw->getExemplars().size(), 2U);
  EXPECT_EQ(view(draw->getExemplars()[0].getPython()), "early");
  EXPECT_EQ(view(draw->getExemplars()[1].getPython()), "late");
}

TEST_F(PoolTest, PoolOfAnotherFormatIsRefusedAndBothFormatsAreNamed) {
  pool_.reset();
  {
    database db(folder_ / "pool", database::mode::create_or_open);
    record_builder<schema::PoolFormat> format;
    format->setVersion(99);
    db.put(family::meta, "format", format.finish());
    db.commit();
  }
  try {
    open();
    FAIL();
  } catch (const pool_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("format 99"));
    EXPECT_THAT(e.what(), HasSubstr("reads format 1"));
  }
}

TEST_F(PoolTest, SecondWriterIsRefused) {
  pool_options options;
  options.folder = folder_ / "pool";
  try {
    pool second(options);
    FAIL();
  } catch (const pool_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("in use by another process"));
  }
}

TEST_F(PoolTest, ReaderWorksBesideALiveWriter) {
  EXPECT_TRUE(pool_inspector(folder_ / "pool").scored_device_types().empty());
  finish_all(submit(make_group({"a"})), 2.0);
  const pool_inspector inspector(folder_ / "pool");
  EXPECT_EQ(inspector.scored_device_types(),
            std::set<std::string>{std::string(view(make_device_type()->getName()))});
  EXPECT_EQ(inspector.count().evaluations, 1U);
  EXPECT_EQ(inspector.top(3).size(), 1U);
  const std::string id = to_string(variant_of("a"));
  EXPECT_EQ(inspector.find_variant(id.substr(0, 6)), variant_of("a"));
  EXPECT_THROW(inspector.find_variant("zz"), pool_error);
  EXPECT_EQ(inspector.rollouts_of(variant_of("a")).size(), 1U);
}

}  // namespace
}  // namespace hone
