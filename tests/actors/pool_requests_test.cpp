#include "actors/pool_requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "actors/timeouts.hpp"
#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;

constexpr std::uint64_t hold_ms = std::chrono::milliseconds(timeouts::pool_hold).count();

// The replies to requests: a record, or nullopt for a refusal.
template <class Record>
struct replies {
  std::vector<std::optional<Record>> all;
  pool_requests::reply<Record> collect() {
    return [this](const std::optional<Record>& answer) { all.push_back(answer); };
  }
  std::size_t served() const {
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const auto& one) { return one.has_value(); }));
  }
  std::size_t refused() const { return all.size() - served(); }
};

class PoolRequests : public PoolTest {
 protected:
  explicit PoolRequests(std::size_t max_groups = 2)
      : schedule_({the_task()}, {.max_groups = max_groups, .samples = 3}),
        requests_(*pool_, schedule_) {
    schedule_.change_devices(the_device(), 1);
    first_version();
  }
  void request_draw() { requests_.add(draws_.collect(), now_); }
  void request_batch(std::size_t groups, bool is_even = false, Stage stage = Stage::CONTRASTIVE) {
    requests_.add({{stage, groups, groups}, is_even}, batches_.collect(), now_);
  }
  // Submits a group of this version whose variants all get a score, so that the group is ready.
  void make_ready_group(const std::string& code, std::uint64_t version = 0) {
    group_options options;
    options.version = version;
    finish_all(submit(make_group({code}, options)), 2.0);
  }

  draw_schedule schedule_;
  pool_requests requests_;
  replies<draw_record> draws_;
  replies<batch_record> batches_;
};

TEST_F(PoolRequests, ServesDrawsInOrderUpToTheBound) {
  for (int i = 0; i < 3; ++i) request_draw();
  requests_.serve_draws(now_);
  ASSERT_EQ(draws_.served(), 2U);
  EXPECT_EQ(requests_.waiting_draws(), 1U);
  EXPECT_EQ((*draws_.all[0])->getSamples(), 3U);
  schedule_.complete(draw_id((*draws_.all[0])->getId()));
  requests_.serve_draws(now_);
  EXPECT_EQ(draws_.served(), 3U);
}

TEST_F(PoolRequests, RefusesARequestThatItHasHeldTooLong) {
  request_draw();
  request_batch(1);
  requests_.refuse_expired(now_ + hold_ms);
  EXPECT_TRUE(draws_.all.empty());
  EXPECT_TRUE(batches_.all.empty());
  requests_.refuse_expired(now_ + hold_ms + 1);
  EXPECT_EQ(draws_.refused(), 1U);
  EXPECT_EQ(batches_.refused(), 1U);
  EXPECT_EQ(requests_.waiting_draws(), 0U);
}

TEST_F(PoolRequests, TheCorpusOfASlowTypeDoesNotKeepAnotherTypeFromDraws) {
  pool_->add_device_type(make_device_type("slow"));
  schedule_.change_devices("slow", 1);
  group_options corpus;
  corpus.origin = schema::RolloutGroup::Origin::CORPUS;
  corpus.device = "slow";
  for (const char* code : {"a", "b", "c", "d", "e"}) submit(make_group({code}, corpus));
  for (int i = 0; i < 2; ++i) request_draw();
  requests_.serve_draws(now_);
  ASSERT_EQ(draws_.served(), 2U);
  for (const auto& draw : draws_.all)
    EXPECT_EQ(view((*draw)->getDeviceType()), the_device()) << "the slow type has a backlog";
}

TEST_F(PoolRequests, DropsOfATypeLowerItsBound) {
  make_ready_group("a", 0);
  for (std::uint64_t v = 1; v <= 3; ++v)
    pool_->commit_step(make_version(v, v - 1, static_cast<std::uint32_t>(v)),
                       make_step(v, v - 1, {}));
  request_batch(1);
  requests_.serve_batch(now_);
  EXPECT_TRUE(batches_.all.empty()) << "the group is too old";
  for (int i = 0; i < 2; ++i) request_draw();
  requests_.serve_draws(now_);
  EXPECT_EQ(draws_.served(), 1U) << "half of the bound of two";
}

TEST_F(PoolRequests, AnExpiredRequestCostsNoDraw) {
  request_draw();
  requests_.serve_draws(now_ + hold_ms + 1);
  EXPECT_EQ(draws_.refused(), 1U);
  EXPECT_EQ(schedule_.outstanding(), 0U);
}

TEST_F(PoolRequests, ForgetsTheRequestsAndDrawsOfAGeneratorThatEnded) {
  constexpr std::uint64_t dead = 7;
  constexpr std::uint64_t alive = 8;
  for (int i = 0; i < 3; ++i) requests_.add(draws_.collect(), now_, dead);
  requests_.add(draws_.collect(), now_, alive);
  requests_.serve_draws(now_);
  EXPECT_EQ(draws_.served(), 2U) << "there is no room for more";
  requests_.forget(dead);
  EXPECT_EQ(schedule_.outstanding(), 0U);
  EXPECT_EQ(requests_.waiting_draws(), 1U);
  requests_.serve_draws(now_);
  EXPECT_EQ(draws_.served(), 3U);
}

TEST_F(PoolRequests, GroupsThatWaitForTheirCommitAreNotGivenAgainAndTakeNoRoom) {
  make_ready_group("a");
  make_ready_group("b");
  request_batch(2);
  requests_.serve_batch(now_);
  ASSERT_EQ(batches_.served(), 1U);
  request_draw();
  requests_.serve_draws(now_);
  EXPECT_EQ(draws_.served(), 0U) << "two groups are being trained on";
  pool_requests::batch_request next{{Stage::CONTRASTIVE, 1, 2}, false};
  for (const auto scored : (*batches_.all[0])->getGroups())
    next.groups.without.insert(group_id(scored.getGroup().getId()));
  requests_.add(next, batches_.collect(), now_);
  requests_.serve_batch(now_);
  EXPECT_EQ(batches_.served(), 1U) << "nothing else is ready";
  requests_.serve_draws(now_);
  EXPECT_EQ(draws_.served(), 1U);
  make_ready_group("c");
  requests_.serve_batch(now_);
  ASSERT_EQ(batches_.served(), 2U);
  EXPECT_EQ((*batches_.all[1])->getGroups().size(), 1U);
}

TEST_F(PoolRequests, GroupsThatWaitForTheirCommitDoNotBecomeTooOld) {
  make_ready_group("a", 0);
  request_batch(1);
  requests_.serve_batch(now_);
  ASSERT_EQ(batches_.served(), 1U);
  for (std::uint64_t v = 1; v <= 3; ++v)
    pool_->commit_step(make_version(v, v - 1, static_cast<std::uint32_t>(v)),
                       make_step(v, v - 1, {}));
  pool_requests::batch_request next{{Stage::CONTRASTIVE, 1, 2}, false};
  next.groups.without.insert(group_id((*batches_.all[0])->getGroups()[0].getGroup().getId()));
  requests_.add(next, batches_.collect(), now_);
  requests_.serve_batch(now_);
  EXPECT_TRUE(pool_->dropped_groups().empty()) << "it is trained on already";
  EXPECT_EQ(pool_->ready_groups(Stage::CONTRASTIVE), 1U);
}

TEST_F(PoolRequests, ServesABatchOnceEnoughGroupsAreReady) {
  make_ready_group("a");
  request_batch(2);
  requests_.serve_batch(now_);
  EXPECT_TRUE(batches_.all.empty());
  make_ready_group("b");
  requests_.serve_batch(now_);
  ASSERT_EQ(batches_.served(), 1U);
  EXPECT_EQ((*batches_.all[0])->getGroups().size(), 2U);
  requests_.serve_batch(now_);
  EXPECT_EQ(batches_.all.size(), 1U) << "a request is answered once";
}

TEST_F(PoolRequests, ANewerBatchRequestReplacesTheOlder) {
  make_ready_group("a");
  request_batch(1);
  replies<batch_record> newer;
  requests_.add({{Stage::CONTRASTIVE, 1, 1}, false}, newer.collect(), now_);
  requests_.serve_batch(now_);
  EXPECT_TRUE(batches_.all.empty());
  EXPECT_EQ(newer.served(), 1U);
}

TEST_F(PoolRequests, AnEvenBatchExceedsTheShareOfATaskIfNoOtherGroupCanBecomeReady) {
  draw_schedule two_tasks({the_task(), {9, 9}}, {.max_groups = 2, .samples = 1});
  two_tasks.change_devices(the_device(), 1);
  pool_requests requests(*pool_, two_tasks);
  make_ready_group("a");
  requests.add({{Stage::CONTRASTIVE, 2, 2}, true}, batches_.collect(), now_);
  requests.serve_batch(now_);
  make_ready_group("b");
  requests.serve_batch(now_);
  ASSERT_EQ(batches_.served(), 1U) << "two ready groups of one task fill the bound";
  EXPECT_EQ((*batches_.all[0])->getGroups().size(), 2U);
}

TEST_F(PoolRequests, AnEvenBatchWaitsForOtherTasksWhileTheirGroupsCanBecomeReady) {
  draw_schedule two_tasks({the_task(), {9, 9}}, {.max_groups = 3, .samples = 1});
  two_tasks.change_devices(the_device(), 1);
  pool_requests requests(*pool_, two_tasks);
  make_ready_group("a");
  make_ready_group("b");
  requests.add({{Stage::CONTRASTIVE, 2, 2}, true}, batches_.collect(), now_);
  requests.serve_batch(now_);
  EXPECT_TRUE(batches_.all.empty());
}

TEST_F(PoolRequests, ReportsTheMeanLagOfABatch) {
  make_ready_group("a", 0);
  pool_->commit_step(make_version(1, 0, 1), make_step(1, 0, {}));
  make_ready_group("b", 1);
  EXPECT_EQ(requests_.lag(), 0.0);
  request_batch(2);
  requests_.serve_batch(now_);
  ASSERT_EQ(batches_.served(), 1U);
  EXPECT_DOUBLE_EQ(requests_.lag(), 0.5) << "one of two groups is one step behind";
}

TEST_F(PoolRequests, ComparedVersionsAreShownTheSameDraws) {
  pool_->commit_step(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  EXPECT_EQ(requests_.compare(*comparison({0, 1}, 2)), 4U);
  for (int i = 0; i < 4; ++i) request_draw();
  requests_.serve_draws(now_);
  ASSERT_EQ(draws_.served(), 4U);
  std::map<std::uint64_t, std::vector<std::uint64_t>> seeds;
  for (const auto& one : draws_.all) seeds[(*one)->getPolicyVersion()].push_back((*one)->getSeed());
  EXPECT_EQ(seeds[0], seeds[1]);
  EXPECT_NE(draw_id((*draws_.all[0])->getId()), draw_id((*draws_.all[2])->getId()));
  requests_.compare(*comparison({0}, 1));
  request_draw();
  requests_.serve_draws(now_);
  EXPECT_NE((*draws_.all[4])->getSeed(), seeds[0][0]) << "another comparison draws anew";
}

// Returns the group that answers a compared draw with one program.
group_record compared_answer(const draw_record& draw, const std::string& code) {
  record_builder<schema::RolloutGroup> group(*make_group({code}));
  group->setOrigin(schema::RolloutGroup::Origin::COMPARISON);
  group->setDraw(*draw);
  return group.finish();
}

TEST_F(PoolRequests, AComparisonJudgesAProgramAgainThatAnEarlierOneHasJudged) {
  for (const std::uint64_t version : {1U, 2U}) {
    pool_->commit_step(
        make_version(version, version - 1, static_cast<std::uint32_t>(version), Stage::COMPARISON),
        make_step(version, version - 1, {}));
    EXPECT_EQ(requests_.compare(*comparison({0}, 1)), 1U);
    request_draw();
    requests_.serve_draws(now_);
    const auto jobs = submit(compared_answer(*draws_.all.back(), "the same"));
    ASSERT_EQ(jobs.size(), 1U) << "comparison at version " << version;
    EXPECT_EQ(jobs[0]->getHeader().getScope(), comparison_scope + scope_kinds * version);
    finish_all(jobs, 2.0);
  }
}

TEST_F(PoolRequests, AnInterruptedComparisonGoesOnWhereItWas) {
  pool_->commit_step(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  EXPECT_EQ(requests_.compare(*comparison({0, 1}, 2)), 4U);
  for (int i = 0; i < 3; ++i) request_draw();
  requests_.serve_draws(now_);
  ASSERT_EQ(draws_.served(), 3U);
  const draw_record judged = *draws_.all[0];
  const draw_record waiting = *draws_.all[1];
  finish_all(submit(compared_answer(judged, "a")), 2.0);
  const auto left = submit(compared_answer(waiting, "b"));

  open();
  draw_schedule schedule({the_task()}, {.max_groups = 2, .samples = 3});
  schedule.change_devices(the_device(), 1);
  pool_requests resumed(*pool_, schedule);
  EXPECT_EQ(resumed.compare(*comparison({0, 1}, 2)), 4U);
  EXPECT_TRUE(resumed.take_given_up().empty());
  replies<draw_record> draws;
  for (int i = 0; i < 4; ++i) resumed.add(draws.collect(), now_);
  resumed.serve_draws(now_);
  ASSERT_EQ(draws.served(), 2U) << "one was not answered, and one not issued";
  for (const auto& one : draws.all) EXPECT_EQ((*one)->getPolicyVersion(), 1U);
  EXPECT_EQ((*draws.all[0])->getSeed(), judged->getSeed()) << "both versions share their draws";
  EXPECT_EQ((*draws.all[1])->getSeed(), waiting->getSeed());
  finish_all(left, 3.0);
  for (const auto& one : draws.all)
    finish_all(submit(compared_answer(*one, to_string(draw_id((*one)->getId())))), 2.0);
  resumed.add({{Stage::COMPARISON, 4, 4}, false}, batches_.collect(), now_);
  resumed.serve_batch(now_);
  EXPECT_EQ(batches_.served(), 1U);
  verify();
}

TEST_F(PoolRequests, AComparisonKeepsNoGroupThatItDoesNotPlan) {
  pool_->commit_step(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  requests_.compare(*comparison({1}, 2));
  for (int i = 0; i < 2; ++i) request_draw();
  requests_.serve_draws(now_);
  ASSERT_EQ(draws_.served(), 2U);
  for (const auto& one : draws_.all) finish_all(submit(compared_answer(*one, "a")), 2.0);
  EXPECT_EQ(pool_->ready_groups(Stage::COMPARISON), 2U);
  EXPECT_EQ(requests_.compare(*comparison({1}, 1)), 1U) << "fewer samples than before";
  EXPECT_EQ(pool_->ready_groups(Stage::COMPARISON), 1U);
}

TEST_F(PoolRequests, AComparisonGivesUpWhatIsHandedInLate) {
  pool_->commit_step(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  const auto early = make_group({"a"});
  submit(early);
  requests_.drop_if_late(*early);
  EXPECT_EQ(pool_->waiting_groups(), 1U) << "no comparison has begun";
  requests_.compare(*comparison({1}, 1));
  EXPECT_EQ(requests_.take_given_up().size(), 1U);
  const auto late = make_group({"b"});
  submit(late);
  requests_.drop_if_late(*late);
  EXPECT_EQ(requests_.take_given_up().size(), 1U);
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  verify();
}

TEST_F(PoolRequests, AComparisonGivesUpWhatTheStageBeforeHasLeft) {
  const auto jobs = submit(make_group({"a", "b"}));
  ASSERT_EQ(jobs.size(), 2U);
  finish(*jobs[0], 2.0);
  pool_->commit_step(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  requests_.compare(*comparison({1}, 1));
  EXPECT_THAT(requests_.take_given_up(),
              testing::ElementsAre(measurement_id(jobs[1]->getHeader().getMeasurementId())));
  EXPECT_TRUE(requests_.take_given_up().empty());
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  EXPECT_EQ(pool_->in_flight(), 0U);
  EXPECT_TRUE(finish(*jobs[1], 2.0).empty()) << "a result that comes nevertheless";
  EXPECT_EQ(pool_->ready_groups(), 0U);
  verify();
  open();
  EXPECT_EQ(pool_->waiting_groups(), 0U);
  EXPECT_EQ(submit(make_group({"b"})).size(), 1U) << "it can be judged later";
}

TEST_F(PoolRequests, AValidationIsAnsweredWhenItsGroupsAreJudged) {
  pool_->commit_step(make_version(3, 0, 1), make_step(3, 0, {}));
  draw_schedule schedule({}, {.max_groups = 2, .samples = 3}, {the_task()});
  schedule.change_devices(the_device(), 1);
  pool_requests requests(*pool_, schedule);
  replies<batch_record> validations;
  requests.validate(10, validations.collect(), now_);
  requests.add(draws_.collect(), now_);
  requests.serve_draws(now_);
  ASSERT_EQ(draws_.served(), 1U);
  const draw_record draw = *draws_.all[0];
  EXPECT_EQ(draw->getStage(), Stage::VALIDATION);
  const auto jobs = submit(compared_answer(draw, "a"));
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_TRUE(jobs[0]->getHeader().getScreened());
  requests.serve_batch(now_);
  EXPECT_TRUE(validations.all.empty());
  finish_all(jobs, 2.0);
  requests.serve_batch(now_);
  ASSERT_EQ(validations.served(), 1U);
  ASSERT_EQ((*validations.all[0])->getGroups().size(), 1U);
  const auto answered = (*validations.all[0])->getGroups()[0].getGroup().getDraw();
  EXPECT_EQ(answered.getComparedAt(), 3U) << "the version that was validated";
  EXPECT_EQ(pool_->ready_groups(Stage::VALIDATION), 0U) << "nothing is trained on them";
}

TEST_F(PoolRequests, AValidationEndsLateOrWithAComparison) {
  draw_schedule schedule({the_task()}, {.max_groups = 2, .samples = 3}, {{9, 9}});
  schedule.change_devices(the_device(), 1);
  pool_requests requests(*pool_, schedule);
  replies<batch_record> validations;
  requests.validate(1, validations.collect(), now_);
  requests.compare(*comparison({0}, 1));
  EXPECT_EQ(validations.refused(), 1U);
  requests.validate(1, validations.collect(), now_);
  requests.serve_batch(now_ + std::chrono::milliseconds(timeouts::validation).count() + 1);
  EXPECT_EQ(validations.refused(), 2U) << "none of its groups came";
}

}  // namespace
}  // namespace hone
