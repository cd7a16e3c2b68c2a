// Tests how the variants of a group are evaluated: jobs, results, further measurements, lost work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;

TEST_F(PoolTest, EachDistinctVariantOfAGroupBecomesOneJob) {
  const auto jobs = submit(make_group({"a", "b", "a"}));
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(view(jobs[0]->getPython()), "a");
  EXPECT_FALSE(jobs[0]->getHeader().getVerified());
  EXPECT_EQ(pool_->waiting_groups(), 1U);
}

TEST_F(PoolTest, RecordingAGroupAgainCreatesNoJobs) {
  const auto group = make_group({"a"});
  EXPECT_EQ(submit(group).size(), 1U);
  EXPECT_EQ(submit(group).size(), 0U);
}

TEST_F(PoolTest, IgnoresAResultThatItHasAlready) {
  const auto job = submit(make_group({"a", "a"}))[0];
  jobs_list jobs;
  EXPECT_TRUE(pool_->record_evaluation(make_result(*job, 2.0), now_, jobs));
  EXPECT_FALSE(pool_->record_evaluation(make_result(*job, 2.0), now_, jobs));
  EXPECT_TRUE(jobs.empty());
  const auto again = submit(make_group({"a"}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(pool_->record_evaluation(make_result(*again[0], 2.0), now_, jobs))
      << "a second measurement";
}

TEST_F(PoolTest, CountsTheSamplesOfAGroupOnceItsLastEvaluationIsKnown) {
  using counts = std::map<Outcome, std::uint64_t>;
  group_options no_program;
  no_program.problem = "no code";
  submit(make_group({"x", "y", "x"}, no_program));
  EXPECT_EQ(pool_->sample_outcomes(Stage::CONTRASTIVE), (counts{{Outcome::UNPARSABLE, 3}}))
      << "every sample counts, and each variant but once is stored";
  const auto jobs = submit(make_group({"a", "b", "a"}));
  finish(*jobs[0], 2.0);
  EXPECT_EQ(pool_->sample_outcomes(Stage::CONTRASTIVE), (counts{{Outcome::UNPARSABLE, 3}}))
      << "the group waits";
  finish(*jobs[1], 0, Outcome::CRASH);
  EXPECT_EQ(pool_->sample_outcomes(Stage::CONTRASTIVE),
            (counts{{Outcome::OK, 2}, {Outcome::CRASH, 1}, {Outcome::UNPARSABLE, 3}}));
  submit(make_group({"a"}));
  EXPECT_EQ(pool_->sample_outcomes(Stage::CONTRASTIVE).at(Outcome::OK), 3U)
      << "known evaluations count at once";
  EXPECT_EQ(pool_->sample_outcomes(Stage::SFT), counts());
  open();
  EXPECT_EQ(pool_->sample_outcomes(Stage::CONTRASTIVE),
            (counts{{Outcome::OK, 3}, {Outcome::CRASH, 1}, {Outcome::UNPARSABLE, 3}}))
      << "the counts outlive the process";
}

group_options only_verified() {
  group_options corpus;
  corpus.origin = schema::RolloutGroup::Origin::CORPUS;
  corpus.timed = false;
  return corpus;
}

TEST_F(PoolTest, AVariantThatIsOnlyVerifiedHasNoScoreAndIsNoExemplar) {
  first_version();
  const auto jobs = submit(make_group({"a"}, only_verified()));
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_FALSE(jobs[0]->getHeader().getTimed());
  EXPECT_TRUE(finish(*jobs[0], 2.0).empty());
  EXPECT_EQ(score_of("a"), 0);
  const auto batch = pool_->take({Stage::SFT, 1, 1});
  ASSERT_TRUE(batch);
  EXPECT_EQ((*batch)->getGroups()[0].getResults()[0].getOutcome(), Outcome::OK)
      << "the corpus can be learned from";
  EXPECT_FALSE(pool_->best(the_task(), the_device()));
  EXPECT_EQ(pool_->draw({.task = the_task(), .device_type = the_device()})->getExemplars().size(),
            0U);
  EXPECT_TRUE(submit(make_group({"a"}, only_verified())).empty()) << "nothing is left to do";
  EXPECT_EQ(pool_->ready_groups(Stage::SFT), 2U);
  verify();
}

TEST_F(PoolTest, AVariantThatWasOnlyVerifiedIsTimedOnceAGroupWantsItsScore) {
  first_version();
  finish(*submit(make_group({"a"}, only_verified()))[0], 2.0);
  const auto jobs = submit(make_group({"a"}));
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_TRUE(jobs[0]->getHeader().getVerified());
  EXPECT_TRUE(jobs[0]->getHeader().getTimed());
  EXPECT_EQ(jobs[0]->getHeader().getKnownScore(), 0);
  EXPECT_EQ(pool_->waiting_groups(), 1U) << "a group is not rewarded before its score is known";
  finish_all(jobs, 2.0);
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  EXPECT_EQ(score_of("a"), 2.0);
  EXPECT_EQ(pool_->best(the_task(), the_device())->score, 2.0);
  verify();
}

TEST_F(PoolTest, AGroupThatJoinsWorkWithoutTimingWaitsForTheScore) {
  first_version();
  const auto untimed = submit(make_group({"a"}, only_verified()));
  EXPECT_TRUE(submit(make_group({"a"})).empty()) << "one job at a time";
  open();
  const auto timed = finish(*untimed[0], 2.0);
  ASSERT_EQ(timed.size(), 1U);
  EXPECT_TRUE(timed[0]->getHeader().getVerified());
  EXPECT_TRUE(timed[0]->getHeader().getTimed());
  EXPECT_EQ(pool_->waiting_groups(), 2U);
  finish(*timed[0], 0, Outcome::UNSTABLE);
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  EXPECT_EQ(pool_->sample_outcomes(Stage::CONTRASTIVE).at(Outcome::UNSTABLE), 1U)
      << "what has no score says nothing of a policy";
  EXPECT_EQ(pool_->sample_outcomes(Stage::SFT).at(Outcome::OK), 1U)
      << "but it is correct, and can be learned from";
  const auto batch = pool_->take({Stage::CONTRASTIVE, 1, 1});
  ASSERT_TRUE(batch);
  EXPECT_EQ((*batch)->getGroups()[0].getResults()[0].getOutcome(), Outcome::UNSTABLE);
  verify();
}

TEST_F(PoolTest, AVariantThatCouldNotBeTimedNeedsNoVerdict) {
  finish(*submit(make_group({"a"}))[0], 0, Outcome::UNSTABLE);
  EXPECT_TRUE(submit(make_group({"a"}, only_verified())).empty());
  EXPECT_EQ(pool_->sample_outcomes(Stage::CONTRASTIVE).at(Outcome::UNSTABLE), 1U);
}

TEST_F(PoolTest, WorkWithoutTimingStaysSoAfterARestart) {
  submit(make_group({"a"}, only_verified()));
  open();
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_FALSE(jobs[0]->getHeader().getTimed());
}

TEST_F(PoolTest, GroupsOfAnAbsentDeviceTypeDoNotCountAsWaitingAfterReopening) {
  submit(make_group({"a"}));
  open(exemplar_method::buckets, 1, false);
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  pool_->add_device_type(make_device_type());
  EXPECT_EQ(pool_->waiting_groups(), 1U);
  EXPECT_EQ(pool_->waiting_by_type().at(the_device()).all, 1U);
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  finish_all(jobs, 2.0);
  EXPECT_EQ(pool_->waiting_by_type().at(the_device()).all, 0U);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 1U);
}

TEST_F(PoolTest, WorkOfAnotherJudgeVersionIsGivenUpAtOnce) {
  submit(make_group({"a"}));
  open(exemplar_method::buckets, 2);
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  EXPECT_TRUE(jobs.empty());
  EXPECT_EQ(pool_->in_flight(), 0U);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 1U);
  const auto known = pool_->evaluation_of({variant_of("a"), the_device(), 1, 0});
  ASSERT_TRUE(known);
  EXPECT_THAT(std::string(view((*known)->getMessage())),
              testing::HasSubstr("version 1 of the judge, and this is version 2"));
  verify();
}

TEST_F(PoolTest, AnotherJudgeVersionShowsNoScoreOfTheOneBefore) {
  finish_all(submit(make_group({"exploit"})), 90.0);
  finish_all(submit(make_group({"honest"})), 2.0);
  open(exemplar_method::buckets, 2, false);
  EXPECT_FALSE(pool_->best(the_task(), the_device())) << "its score is that of another judge";
  EXPECT_EQ(pool_->draw({the_task(), the_device()})->getExemplars().size(), 0U);
  open(exemplar_method::buckets, 2);  // a run that was killed before it could judge them again
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  ASSERT_EQ(jobs.size(), 2U) << "the leaders are judged again";
  for (const auto& job : jobs) {
    EXPECT_FALSE(job->getHeader().getVerified());
    const bool is_honest = variant_id(job->getHeader().getVariantId()) == variant_of("honest");
    jobs_list more;
    pool_->record_evaluation(make_result(*job, 2.1, is_honest ? Outcome::OK : Outcome::CHEATING, 2),
                             now_, more);
  }
  pool_->commit();
  const auto best = pool_->best(the_task(), the_device());
  ASSERT_TRUE(best);
  EXPECT_EQ(best->variant, variant_of("honest"));
  EXPECT_EQ(best->score, 2.1);
  verify();
  open(exemplar_method::buckets, 2);
  EXPECT_TRUE(pool_->best(the_task(), the_device())) << "the same judge as before";
}

TEST_F(PoolTest, GroupIsReadyWhenItsLastEvaluationIsKnown) {
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

TEST_F(PoolTest, UnparsableVariantIsClosedAtOnce) {
  group_options options;
  options.problem = "line 1: no code";
  EXPECT_TRUE(submit(make_group({"x"}, options)).empty());
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  const auto known = pool_->evaluation_of({variant_of("x"), the_device(), 1, 0});
  ASSERT_TRUE(known);
  EXPECT_EQ((*known)->getOutcome(), Outcome::UNPARSABLE);
}

TEST_F(PoolTest, FailedVariantIsNotEvaluatedAgain) {
  finish(*submit(make_group({"a"}))[0], 0, Outcome::COMPILE_ERROR);
  EXPECT_TRUE(submit(make_group({"a"})).empty());
}

TEST_F(PoolTest, RepeatedVariantIsMeasuredFiveTimesAndItsScoreIsTheMedian) {
  // Another variant is the best of the task, so that only the repetitions request measurements.
  finish_all(submit(make_group({"leader"})), 50.0);
  jobs_list jobs = submit(make_group({"a"}));
  finish(*jobs[0], 9.0);
  EXPECT_EQ(score_of("a"), 9.0);
  const std::vector<double> later = {2.0, 2.2, 1.9, 2.1};
  for (const double score : later) {
    jobs = submit(make_group({"a"}));
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_TRUE(jobs[0]->getHeader().getVerified()) << "a variant is not verified twice";
    EXPECT_GT(jobs[0]->getHeader().getKnownScore(), 0);
    finish(*jobs[0], score);
  }
  EXPECT_EQ(score_of("a"), 2.1);
  EXPECT_TRUE(submit(make_group({"a"})).empty());
}

TEST_F(PoolTest, GroupDoesNotWaitForFurtherMeasurements) {
  first_version();
  finish_all(submit(make_group({"leader"})), 50.0);
  finish(*submit(make_group({"a"}))[0], 2.0);
  submit(make_group({"a"}));
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 3U);
}

TEST_F(PoolTest, BestOfSeveralVariantsIsMeasuredFiveTimes) {
  finish_all(submit(make_group({"b"})), 1.5);
  jobs_list jobs = submit(make_group({"a"}));
  int measured = 0;
  while (!jobs.empty()) {
    ASSERT_EQ(jobs.size(), 1U);
    ++measured;
    jobs = finish(*jobs[0], measured == 1 ? 30.0 : 2.0);
  }
  EXPECT_EQ(measured, 5);
  EXPECT_EQ(score_of("a"), 2.0) << "one lucky measurement does not decide the score";
}

TEST_F(PoolTest, OnlyVariantOfATaskIsMeasuredAgainOnceItHasARival) {
  EXPECT_TRUE(finish(*submit(make_group({"a"}))[0], 30.0).empty()) << "it was not selected";
  jobs_list jobs = finish(*submit(make_group({"b"}))[0], 2.0);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(variant_id(jobs[0]->getHeader().getVariantId()), variant_of("a"));
  EXPECT_TRUE(jobs[0]->getHeader().getVerified());
  int measured = 1;
  for (; !jobs.empty() && measured <= 5; ++measured) jobs = finish(*jobs[0], 4.0);
  EXPECT_EQ(measured, 5);
  EXPECT_EQ(score_of("a"), 4.0);
}

TEST_F(PoolTest, TheNextBestIsMeasuredAgainWhenTheBestFalls) {
  finish(*submit(make_group({"c"}))[0], 1.5);
  jobs_list jobs = finish(*submit(make_group({"a"}))[0], 30.0);
  ASSERT_EQ(jobs.size(), 1U) << "the lucky best is measured again";
  EXPECT_TRUE(finish(*submit(make_group({"b"}))[0], 3.0).empty()) << "which is not the best";
  std::set<variant_id> measured;
  while (!jobs.empty()) {
    const auto job = jobs.back();
    jobs.pop_back();
    for (auto& next : finish(*job, 2.0)) jobs.push_back(std::move(next));
    measured.emplace(job->getHeader().getVariantId());
  }
  EXPECT_EQ(score_of("a"), 2.0);
  EXPECT_TRUE(measured.contains(variant_of("b"))) << "which leads now";
}

TEST_F(PoolTest, FirstResultOfSeveralAttemptsCounts) {
  const auto jobs = submit(make_group({"a"}));
  finish(*jobs[0], 2.0, Outcome::WRONG_RESULT);
  EXPECT_TRUE(finish(*jobs[0], 7.0).empty());
  const auto known = pool_->evaluation_of({variant_of("a"), the_device(), 1, 0});
  EXPECT_EQ((*known)->getOutcome(), Outcome::WRONG_RESULT);
}

TEST_F(PoolTest, OverdueWorkIsSentAgainAndEndsAsInfrastructureAfterThreeAttempts) {
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
  EXPECT_EQ(submit(make_group({"a"})).size(), 1U) << "a variant that recurs is evaluated again";
}

TEST_F(PoolTest, WorkForAnAbsentDeviceTypeWaitsWithoutUsingAttempts) {
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

TEST_F(PoolTest, InfrastructureFailureOfAWorkerIsRetried) {
  jobs_list jobs = submit(make_group({"a"}));
  jobs = finish(*jobs[0], 0, Outcome::INFRASTRUCTURE);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0]->getHeader().getAttempt(), 2U);
  finish_all(jobs, 3.0);
  EXPECT_EQ(score_of("a"), 3.0);
}

TEST_F(PoolTest, UnstableVariantIsMeasuredAgainWhenItRecurs) {
  finish(*submit(make_group({"a"}))[0], 0, Outcome::UNSTABLE);
  const auto jobs = submit(make_group({"a"}));
  ASSERT_EQ(jobs.size(), 1U);
  finish_all(jobs, 1.5);
  EXPECT_EQ(score_of("a"), 1.5);
}

TEST_F(PoolTest, VariantThatIsFoundCheatingLaterIsNoLongerAnExemplar) {
  finish_all(submit(make_group({"leader"})), 50.0);
  finish(*submit(make_group({"a"}))[0], 3.0);
  EXPECT_EQ(pool_->accepted_variants(the_task(), the_device()), 2U);
  finish(*submit(make_group({"a"}))[0], 0, Outcome::CHEATING);
  EXPECT_EQ(pool_->accepted_variants(the_task(), the_device()), 1U);
  verify();
}

}  // namespace
}  // namespace hone
