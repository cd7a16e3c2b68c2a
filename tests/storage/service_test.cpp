// Tests of storage/pool_service.cpp: groups that clients hand in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/names.hpp"
#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;
using State = schema::Judgement::State;
using testing::SizeIs;

class PoolOfClients : public PoolTest {
 protected:
  // A group of a client that expires at `expires_ms`.
  static record<schema::RolloutGroup> asked(const std::vector<std::string>& codes,
                                            std::uint64_t started_ms = 1000000,
                                            std::uint64_t expires_ms = 0,
                                            const task_id& task = the_task()) {
    group_options options;
    options.origin = schema::RolloutGroup::Origin::SERVICE;
    options.stage = Stage::SERVICE;
    options.task = task;
    record_builder<schema::RolloutGroup> group(*make_group(codes, options));
    group->setStartedMs(started_ms);
    auto request = group->initRequest();
    request.setClient("somebody");
    request.setPriority(2);
    request.setExpiresMs(expires_ms);
    return group.finish();
  }
  static group_id id_of(const record<schema::RolloutGroup>& group) {
    return group_id(group->getId());
  }
  State state_of(const record<schema::RolloutGroup>& group) {
    return (*pool_->judgement(id_of(group)))->getState();
  }
};

TEST_F(PoolOfClients, AJudgementHasOneResultPerProgramAlsoOfEqualOnes) {
  const auto group = asked({"a", "b", "a"});
  const jobs_list jobs = submit(group);
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(view(jobs[0]->getHeader().getClient()), "somebody");
  EXPECT_EQ(jobs[0]->getHeader().getPriority(), 2);
  EXPECT_EQ(state_of(group), State::WAITING);
  finish_all(jobs, 2.0);
  const auto known = pool_->judgement(id_of(group));
  EXPECT_EQ((*known)->getState(), State::DONE);
  EXPECT_EQ(view((*known)->getClient()), "somebody");
  ASSERT_EQ((*known)->getResults().size(), 3U);
  for (const auto one : (*known)->getResults()) EXPECT_EQ(one.getScore(), 2.0);
  EXPECT_EQ(variant_id((*known)->getResults()[2].getVariantId()), variant_of("a"));
  EXPECT_FALSE(pool_->judgement({1, 2}).has_value());
}

TEST_F(PoolOfClients, AKnownProgramIsAnsweredAtOnce) {
  finish_all(submit(asked({"a"})), 2.0);
  const auto again = asked({"a"});
  submit(again);
  EXPECT_EQ(state_of(again), State::DONE) << "further measurements only make its score more exact";
}

TEST_F(PoolOfClients, WaitingGroupsAndLateTasksOutliveTheProcess) {
  const auto group = asked({"a"});
  submit(group);
  open();
  EXPECT_EQ(state_of(group), State::WAITING);
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(view(jobs[0]->getHeader().getClient()), "somebody");
  finish_all(jobs, 2.0);
  EXPECT_EQ(state_of(group), State::DONE);
  open();
  EXPECT_EQ(state_of(group), State::DONE);
}

TEST_F(PoolOfClients, JobsOfALateTaskCarryIt) {
  record_builder<schema::Task> late(*make_task());
  task_id{8, 8}.store(late->getId());
  late->setIsLate(true);
  pool_->add_task(late.finish());
  pool_->commit();
  const jobs_list late_jobs = submit(asked({"a"}, 1000000, 0, {8, 8}));
  ASSERT_THAT(late_jobs, SizeIs(1));
  EXPECT_EQ(view(late_jobs[0]->getHeader().getTask().getText()), "name = \"t\"");
  const jobs_list jobs = submit(asked({"b"}));
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_FALSE(jobs[0]->getHeader().hasTask());
}

TEST_F(PoolOfClients, WithdrawnAndExpiredGroupsWaitNoMore) {
  const auto first = asked({"a", "shared"});
  const auto second = asked({"b", "shared"}, 1000000, now_ + 100);
  const auto third = asked({"shared"});
  for (const auto& group : {first, second, third}) submit(group);
  EXPECT_THAT(pool_->withdraw(id_of(first)), SizeIs(1)) << "the job of a";
  EXPECT_EQ(state_of(first), State::WITHDRAWN);
  EXPECT_THAT(pool_->withdraw_expired(now_ + 99), SizeIs(0));
  EXPECT_THAT(pool_->withdraw_expired(now_ + 100), SizeIs(1)) << "the job of b";
  EXPECT_EQ(state_of(second), State::WITHDRAWN);
  EXPECT_EQ(state_of(third), State::WAITING) << "its job was wanted by all three";
  pool_->commit();
  open();
  EXPECT_EQ(state_of(first), State::WITHDRAWN);
  jobs_list jobs;
  pool_->collect_overdue(now_, jobs);
  ASSERT_THAT(jobs, SizeIs(1));
  finish_all(jobs, 1.5);
  EXPECT_EQ(state_of(third), State::DONE);
  EXPECT_THAT(pool_->withdraw(id_of(third)), SizeIs(0)) << "it is judged";
  EXPECT_EQ(state_of(third), State::DONE);
}

TEST_F(PoolOfClients, ForgetsOldJudgementsAndKeepsTheirEvaluations) {
  const auto old = asked({"a"}, 1000);
  const auto young = asked({"b"}, 5000);
  const auto waiting = asked({"c"}, 1000);
  finish_all(submit(old), 2.0);
  finish_all(submit(young), 3.0);
  submit(waiting);
  pool_->forget_judged(2000);
  pool_->commit();
  EXPECT_FALSE(pool_->judgement(id_of(old)).has_value());
  EXPECT_EQ(state_of(young), State::DONE);
  EXPECT_EQ(state_of(waiting), State::WAITING);
  EXPECT_EQ(score_of("a"), 2.0);
  verify();
}

}  // namespace
}  // namespace hone
