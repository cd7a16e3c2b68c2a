#include "storage/pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/inspection.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using testing::HasSubstr;

using jobs_list = std::vector<record<schema::CompileJob>>;

class PoolTest : public testing::Test {
 protected:
  PoolTest() { open(); }

  void open(exemplar_method method = exemplar_method::buckets, std::uint32_t judge = 1, bool with_device = true) {
    pool_.reset();
    pool_options options;
    options.folder = folder_ / "pool";
    options.judge_version = judge;
    options.job_deadline_ms = 1000;
    options.exemplars.method = method;
    pool_ = std::make_unique<pool>(options);
    pool_->add_task(make_task());
    if (with_device) pool_->add_device_type(make_device_type());
    pool_->commit();
  }

  jobs_list submit(const record<schema::RolloutGroup>& group) {
    jobs_list jobs;
    pool_->record_group(group, now_, jobs);
    pool_->commit();
    return jobs;
  }
  jobs_list finish(const schema::CompileJob::Reader& job, double score, Outcome outcome = Outcome::OK) {
    jobs_list jobs;
    pool_->record_evaluation(make_result(job, score, outcome), now_, jobs);
    pool_->commit();
    return jobs;
  }
  // Answers everything that is asked for, follow-ups included, with this score.
  void finish_all(jobs_list jobs, double score) {
    while (!jobs.empty()) {
      jobs_list next;
      for (const auto& job : jobs) {
        auto more = finish(*job, score);
        next.insert(next.end(), more.begin(), more.end());
      }
      jobs = std::move(next);
    }
  }
  double score_of(const std::string& code) {
    const auto known = pool_->evaluation_of({variant_of(code), the_device(), 1, 0});
    return known ? (*known)->getScore() : -1;
  }
  void first_version() { pool_->commit_step(make_version(0, 0, 0), make_step(0, 0, {})); }
  verification_report verify() {
    pool_.reset();
    const pool_inspector inspector(folder_ / "pool");
    auto report = verify_pool(inspector);
    for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
    return report;
  }

  temporary_folder folder_;
  std::unique_ptr<pool> pool_;
  std::uint64_t now_ = 1000000;
};

TEST_F(PoolTest, AGroupBecomesWorkOnceForEachProgram) {
  const auto jobs = submit(make_group({"a", "b", "a"}));
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(view(jobs[0]->getPython()), "a");
  EXPECT_FALSE(jobs[0]->getHeader().getVerified());
  EXPECT_EQ(pool_->waiting_groups(), 1U);
}

TEST_F(PoolTest, TheSameGroupTwiceIsOneGroup) {
  const auto group = make_group({"a"});
  EXPECT_EQ(submit(group).size(), 1U);
  EXPECT_EQ(submit(group).size(), 0U);
}

TEST_F(PoolTest, SaysWhichResultIsAProgramsFirst) {
  group_options no_program;
  no_program.problem = "no code";
  jobs_list jobs;
  EXPECT_EQ(pool_->record_group(make_group({"x", "y"}, no_program), now_, jobs), 2U);
  EXPECT_EQ(pool_->record_group(make_group({"x"}, no_program), now_, jobs), 0U) << "it is known";
  const auto job = submit(make_group({"a", "a"}))[0];
  jobs.clear();
  EXPECT_EQ(pool_->record_evaluation(make_result(*job, 2.0), now_, jobs), pool::taken::as_first);
  EXPECT_EQ(pool_->record_evaluation(make_result(*job, 2.0), now_, jobs), pool::taken::not_at_all) << "once more";
  ASSERT_FALSE(jobs.empty());
  EXPECT_EQ(pool_->record_evaluation(make_result(*jobs[0], 2.0), now_, jobs), pool::taken::beside_others);
}

TEST_F(PoolTest, GroupsOfADeviceTypeThatIsNotThereTakeNoRoomOnceAPoolIsOpenedAgain) {
  submit(make_group({"a"}));
  open(exemplar_method::buckets, 1, false);
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  pool_->add_device_type(make_device_type());
  EXPECT_EQ(pool_->waiting_groups(), 1U);
  EXPECT_EQ(pool_->waiting_by_type().at(the_device()), 1U);
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  finish_all(jobs, 2.0);
  EXPECT_EQ(pool_->waiting_by_type().at(the_device()), 0U);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 1U);
}

TEST_F(PoolTest, WhatAnotherJudgeWasAskedIsGivenUpAtOnce) {
  submit(make_group({"a"}));
  open(exemplar_method::buckets, 2);
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  EXPECT_TRUE(jobs.empty());
  EXPECT_EQ(pool_->in_flight(), 0U);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 1U);
  verify();
}

TEST_F(PoolTest, AGroupIsReadyWhenItsLastProgramIsKnown) {
  first_version();
  const auto jobs = submit(make_group({"a", "b"}));
  finish(*jobs[0], 2.0);
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  finish(*jobs[1], 0, Outcome::WRONG_RESULT);
  const auto batch = pool_->take({Stage::CONTRASTIVE, 1, 1});
  ASSERT_TRUE(batch);
  const auto results = (*batch)->getGroups()[0].getResults();
  EXPECT_EQ(results[0].getOutcome(), Outcome::OK);
  EXPECT_EQ(results[0].getScore(), 2.0);
  EXPECT_EQ(results[1].getOutcome(), Outcome::WRONG_RESULT);
  EXPECT_EQ(results[1].getScore(), 0.0);
}

TEST_F(PoolTest, WhatDoesNotParseIsClosedAtOnce) {
  group_options options;
  options.problem = "line 1: no code";
  EXPECT_TRUE(submit(make_group({"x"}, options)).empty());
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  const auto known = pool_->evaluation_of({variant_of("x"), the_device(), 1, 0});
  ASSERT_TRUE(known);
  EXPECT_EQ((*known)->getOutcome(), Outcome::UNPARSABLE);
}

TEST_F(PoolTest, AFailureIsRememberedAndNotTriedAgain) {
  finish(*submit(make_group({"a"}))[0], 0, Outcome::COMPILE_ERROR);
  EXPECT_TRUE(submit(make_group({"a"})).empty());
}

TEST_F(PoolTest, ARepeatedProgramIsMeasuredAgainUntilItHasFiveAndItsScoreIsTheirMedian) {
  // Something better leads the task, so that nothing but the repetitions asks for measurements.
  finish_all(submit(make_group({"leader"})), 50.0);
  jobs_list jobs = submit(make_group({"a"}));
  finish(*jobs[0], 9.0);
  EXPECT_EQ(score_of("a"), 9.0);
  const std::vector<double> later = {2.0, 2.2, 1.9, 2.1};
  for (const double score : later) {
    jobs = submit(make_group({"a"}));
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_TRUE(jobs[0]->getHeader().getVerified()) << "it is not verified twice";
    EXPECT_GT(jobs[0]->getHeader().getKnownScore(), 0);
    finish(*jobs[0], score);
  }
  EXPECT_EQ(score_of("a"), 2.1);
  EXPECT_TRUE(submit(make_group({"a"})).empty());
}

TEST_F(PoolTest, AGroupDoesNotWaitForFurtherMeasurements) {
  first_version();
  finish_all(submit(make_group({"leader"})), 50.0);
  finish(*submit(make_group({"a"}))[0], 2.0);
  submit(make_group({"a"}));
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 3U);
}

TEST_F(PoolTest, WhateverLeadsItsTaskIsMeasuredUntilItIsSure) {
  jobs_list jobs = submit(make_group({"a"}));
  int measured = 0;
  while (!jobs.empty()) {
    ASSERT_EQ(jobs.size(), 1U);
    ++measured;
    jobs = finish(*jobs[0], measured == 1 ? 30.0 : 2.0);
  }
  EXPECT_EQ(measured, 5);
  EXPECT_EQ(score_of("a"), 2.0) << "one lucky time is not its score";
}

TEST_F(PoolTest, OfSeveralAttemptsTheFirstResultCounts) {
  const auto jobs = submit(make_group({"a"}));
  finish(*jobs[0], 2.0, Outcome::WRONG_RESULT);
  EXPECT_TRUE(finish(*jobs[0], 7.0).empty());
  const auto known = pool_->evaluation_of({variant_of("a"), the_device(), 1, 0});
  EXPECT_EQ((*known)->getOutcome(), Outcome::WRONG_RESULT);
}

TEST_F(PoolTest, OverdueWorkIsGivenOutAgainAndAfterThreeAttemptsBlamedOnNobody) {
  first_version();
  submit(make_group({"a", "b"}));
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  EXPECT_TRUE(jobs.empty());
  for (std::uint32_t attempt = 2; attempt <= 3; ++attempt) {
    now_ += 1001;
    jobs.clear();
    pool_->collect_overdue(now_, jobs);
    ASSERT_EQ(jobs.size(), 2U);
    EXPECT_EQ(jobs[0]->getHeader().getAttempt(), attempt);
  }
  now_ += 1001;
  jobs.clear();
  pool_->collect_overdue(now_, jobs);
  EXPECT_TRUE(jobs.empty());
  const auto batch = pool_->take({Stage::CONTRASTIVE, 1, 1});
  ASSERT_TRUE(batch);
  EXPECT_EQ((*batch)->getGroups()[0].getResults()[0].getOutcome(), Outcome::INFRASTRUCTURE);
  EXPECT_EQ(submit(make_group({"a"})).size(), 1U) << "it gets another chance when it is met again";
}

TEST_F(PoolTest, WorkForADeviceThatIsGoneWaitsWithoutLosingAttempts) {
  pool_->remove_device_type(the_device());
  EXPECT_TRUE(submit(make_group({"a"})).empty());
  jobs_list jobs;
  for (int i = 0; i < 10; ++i) {
    now_ += 2000;
    pool_->collect_overdue(now_, jobs);
  }
  EXPECT_TRUE(jobs.empty());
  pool_->add_device_type(make_device_type());
  pool_->collect_overdue(now_, jobs);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0]->getHeader().getAttempt(), 1U);
  EXPECT_EQ(view(jobs[0]->getDeviceType().getName()), the_device());
}

TEST_F(PoolTest, AWorkersInfrastructureFailureIsRetriedToo) {
  jobs_list jobs = submit(make_group({"a"}));
  jobs = finish(*jobs[0], 0, Outcome::INFRASTRUCTURE);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0]->getHeader().getAttempt(), 2U);
  finish_all(jobs, 3.0);
  EXPECT_EQ(score_of("a"), 3.0);
}

TEST_F(PoolTest, AnUnstableTimeIsTriedAgainWhenTheProgramIsMet) {
  finish(*submit(make_group({"a"}))[0], 0, Outcome::UNSTABLE);
  const auto jobs = submit(make_group({"a"}));
  ASSERT_EQ(jobs.size(), 1U);
  finish_all(jobs, 1.5);
  EXPECT_EQ(score_of("a"), 1.5);
}

TEST_F(PoolTest, AProgramCaughtLaterIsShownNoMore) {
  finish_all(submit(make_group({"leader"})), 50.0);
  finish(*submit(make_group({"a"}))[0], 3.0);
  EXPECT_EQ(pool_->accepted_variants(the_task(), the_device()), 2U);
  finish(*submit(make_group({"a"}))[0], 0, Outcome::CHEATING);
  EXPECT_EQ(pool_->accepted_variants(the_task(), the_device()), 1U);
  verify();
}

TEST_F(PoolTest, EverythingAcknowledgedSurvivesReopening) {
  first_version();
  const auto jobs = submit(make_group({"a", "b"}));
  finish(*jobs[0], 2.0);
  open();
  EXPECT_EQ(pool_->waiting_groups(), 1U);
  jobs_list again;
  pool_->collect_overdue(now_, again);
  ASSERT_FALSE(again.empty());
  for (const auto& job : again) EXPECT_EQ(job->getHeader().getAttempt(), 1U) << "a restart is not the variant's fault";
  finish_all(again, 2.0);
  EXPECT_TRUE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  const auto report = verify();
  EXPECT_EQ(report.checked.at("variants"), 2U);
  EXPECT_EQ(report.checked.at("groups"), 1U);
}

TEST_F(PoolTest, WhatWasNotCommittedIsGone) {
  jobs_list jobs;
  pool_->record_group(make_group({"a"}), now_, jobs);
  open();
  EXPECT_EQ(pool_->in_flight(), 0U);
}

TEST_F(PoolTest, AStepConsumesItsGroupsOnce) {
  first_version();
  const auto group = make_group({"a"});
  finish_all(submit(group), 2.0);
  const group_id id(group->getId());
  pool_->commit_step(make_version(1, 0, 1), make_step(1, 0, {id}));
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  EXPECT_THROW(pool_->commit_step(make_version(2, 1, 2), make_step(2, 1, {id})), pool_error);
  EXPECT_THROW(pool_->commit_step(make_version(1, 0, 1), make_step(1, 0, {})), pool_error) << "numbers are never reused";
}

TEST_F(PoolTest, LeavingABranchGivesItsGroupsBack) {
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

TEST_F(PoolTest, OldGroupsAreDroppedByLagAlongTheChain) {
  first_version();
  group_options options;
  options.version = 0;
  finish_all(submit(make_group({"a"}, options)), 2.0);
  for (std::uint64_t v = 1; v <= 3; ++v) pool_->commit_step(make_version(v, v - 1, static_cast<std::uint32_t>(v)), make_step(v, v - 1, {}));
  EXPECT_FALSE(pool_->take({Stage::CONTRASTIVE, 1, 1}));
  EXPECT_EQ(pool_->dropped_groups(), 1U);
}

TEST_F(PoolTest, NoMoreGroupsOfATaskAreTakenThanAskedFor) {
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
  const std::vector<record<schema::RolloutGroup>> groups = {make_group({"a"}), make_group({"b"}), make_group({"c"}), make_group({"d"}, other)};
  for (const auto& group : groups) finish_all(submit(group), 2.0);
  const auto batch = pool_->take({Stage::CONTRASTIVE, 3, 3, 2});
  ASSERT_TRUE(batch);
  std::vector<group_id> taken;
  for (const auto scored : (*batch)->getGroups()) taken.emplace_back(scored.getGroup().getId());
  EXPECT_THAT(taken, testing::ElementsAre(group_id(groups[0]->getId()), group_id(groups[3]->getId()), group_id(groups[1]->getId())));
}

TEST_F(PoolTest, AComparisonIsJudgedAfreshAndLeavesTheExemplarsAlone) {
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

TEST_F(PoolTest, ADrawShowsExemplarsWithTextsAndScoresTheBetterOneLast) {
  finish_all(submit(make_group({"slow"})), 1.0);
  finish_all(submit(make_group({"fast"})), 8.0);
  const auto draw = pool_->draw({the_task(), the_device(), Stage::CONTRASTIVE, 0, 4});
  ASSERT_EQ(draw->getExemplars().size(), 2U);
  EXPECT_EQ(view(draw->getExemplars()[0].getPython()), "slow");
  EXPECT_EQ(view(draw->getExemplars()[1].getPython()), "fast");
  EXPECT_EQ(draw->getExemplars()[1].getScore(), 8.0);
  EXPECT_EQ(pool_->draw({the_task(), "another-device", Stage::CONTRASTIVE, 0, 4})->getExemplars().size(), 0U);
}

TEST_F(PoolTest, AnotherFormatIsRefusedNamingBoth) {
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

TEST_F(PoolTest, ASecondWriterIsRefused) {
  pool_options options;
  options.folder = folder_ / "pool";
  try {
    pool second(options);
    FAIL();
  } catch (const pool_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("in use by another process"));
  }
}

TEST_F(PoolTest, AReaderLooksInWhileTheWriterWrites) {
  finish_all(submit(make_group({"a"})), 2.0);
  const pool_inspector inspector(folder_ / "pool");
  EXPECT_EQ(inspector.count().evaluations, 1U);
  EXPECT_EQ(inspector.top(3).size(), 1U);
  const std::string id = to_string(variant_of("a"));
  EXPECT_EQ(inspector.find_variant(id.substr(0, 6)), variant_of("a"));
  EXPECT_THROW(inspector.find_variant("zz"), pool_error);
  EXPECT_EQ(inspector.rollouts_of(variant_of("a")).size(), 1U);
}

}  // namespace
}  // namespace hone
