#include "actors/pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/actor_system.hpp"
#include "tests/support/actor_test.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

// The test takes the place of the generator, the compile queue, the learner and the supervisor.
class PoolActor : public actor_test {
 protected:
  PoolActor() {
    tasks_ = std::make_shared<const task_table>(table_of_softmax(the_task()));
    options_.storage.folder = folder_ / "pool";
    options_.storage.judge_version = 1;
    options_.draws = {.max_groups = 1, .samples = 2};
    options_.acknowledgments = folder_ / "acknowledged";
    options_.has_log_thread = false;
  }
  void start() {
    spawn();
    tell(pool_, connect_atom_v, caf::actor_cast<compile_queue_actor>(me()),
         caf::actor_cast<verify_queue_actor>(me()));
    change_devices(the_device(), 1);
    commit(make_version(0, 0, 0), make_step(0, 0, {}));
  }
  void spawn() {
    pool_ = own(system_.spawn(pool_behavior, options_, tasks_, me()));
    settle();
  }
  void change_devices(const std::string& type, std::int32_t by) {
    tell(pool_, device_atom_v, make_device_type(type), by);
  }
  void commit(const version_record& version, const step_record& step) {
    ask<done_atom>(pool_, commit_atom_v, version, step);
  }
  void submit(const group_record& group) { ask<done_atom>(pool_, submit_atom_v, group); }
  compile_job next_job() {
    compile_job job;
    EXPECT_TRUE(take([&](put_atom, const compile_job& j) { job = j; })) << "no job was sent";
    return job;
  }
  void finish(const compile_job& job, double score) {
    tell(pool_, close_atom_v, make_result(*job, score));
  }
  // Requests a draw through an actor that passes the reply to the test, and lives on.
  caf::actor request_draw() {
    const auto generator =
        own(system_.spawn([pool = pool_, to = me()](caf::event_based_actor* self) {
          self->request(pool, std::chrono::seconds(20), draw_atom_v)
              .then([self, to](const draw_record& draw) { self->send(to, draw); });
          return caf::behavior{[](tick_atom) {}};
        }));
    settle();
    return generator;
  }
  draw_record next_draw() {
    draw_record draw;
    EXPECT_TRUE(take([&](const draw_record& d) { draw = d; })) << "no draw was sent";
    return draw;
  }
  batch_record take_batch(std::uint32_t groups, bool is_even, Stage stage = Stage::CONTRASTIVE) {
    return ask<batch_record>(pool_, take_atom_v, static_cast<std::uint8_t>(stage), groups, groups,
                             is_even, std::vector<std::uint64_t>{});
  }
  std::size_t waiting_draws() {
    return ask<actor_status_record>(pool_, status_atom_v)->getQueued();
  }

  temporary_folder folder_;
  std::shared_ptr<const task_table> tasks_;
  pool_actor_options options_;
  pool_actor pool_;
};

// Returns the group that answers a draw.
group_record answer(const draw_record& draw, const std::vector<std::string>& codes) {
  const group_record group = make_group(codes);
  capnp::MallocMessageBuilder scratch;
  scratch.setRoot(*group);
  scratch.getRoot<schema::RolloutGroup>().setDraw(*draw);
  return copy_record<schema::RolloutGroup>(scratch.getRoot<schema::RolloutGroup>().asReader());
}

TEST_F(PoolActor, AcknowledgesAGroupOnceItSurvivesAKill) {
  start();
  const auto group = make_group({"a", "b"});
  submit(group);
  EXPECT_THAT(read_file(folder_ / "acknowledged"),
              HasSubstr("group " + to_string(group_id(group->getId()))));
  kill(pool_);
  const pool again(options_.storage);
  EXPECT_EQ(again.in_flight(), 2U);
}

TEST_F(PoolActor, DoesNotContinueALineOfAcknowledgementsThatWasCut) {
  const std::string cut = "measurement a457246724f5bf4d";
  std::ofstream(folder_ / "acknowledged") << "version 7\n" << cut;
  start();
  const auto group = make_group({"a"});
  submit(group);
  EXPECT_EQ(read_file(folder_ / "acknowledged"),
            "version 7\nversion 0\ngroup " + to_string(group_id(group->getId())) + "\n");
}

TEST_F(PoolActor, HoldsARequestForADrawUntilAStepHasMadeRoom) {
  start();
  request_draw();
  const draw_record first = next_draw();
  request_draw();
  ASSERT_EQ(waiting_draws(), 1U);
  const group_record group = answer(first, {"a"});
  submit(group);
  EXPECT_EQ(waiting_draws(), 1U) << "its group waits for a result";
  finish(next_job(), 2.0);
  const auto batch = take_batch(1, false);
  ASSERT_EQ(batch->getGroups().size(), 1U);
  EXPECT_EQ(waiting_draws(), 1U) << "the learner has it, but no step is durable";
  commit(make_version(1, 0, 1), make_step(1, 0, {group_id(group->getId())}));
  const draw_record second = next_draw();
  EXPECT_EQ(second->getPolicyVersion(), 1U);
  ASSERT_EQ(second->getExemplars().size(), 1U);
  EXPECT_EQ(second->getExemplars()[0].getScore(), 2.0);
}

TEST_F(PoolActor, GivesTheDrawsOfAGeneratorThatHasEndedToOthers) {
  start();
  const caf::actor first = request_draw();
  next_draw();
  request_draw();
  const caf::actor third = request_draw();
  EXPECT_EQ(waiting_draws(), 2U);
  kill(third);
  EXPECT_EQ(waiting_draws(), 1U);
  kill(first);
  next_draw();
  EXPECT_EQ(waiting_draws(), 0U);
}

TEST_F(PoolActor, GivesTheDrawsOfALostNodeToOthers) {
  start();
  const caf::actor first = request_draw();
  next_draw();
  tell(pool_, leave_atom_v, first.node());
  request_draw();
  next_draw();
}

TEST_F(PoolActor, AnEvenStepWithMoreGroupsThanTasksTakesSeveralPerTask) {
  options_.draws.max_groups = 3;
  start();
  for (const char* code : {"a", "b"}) {
    request_draw();
    submit(answer(next_draw(), {code}));
  }
  for (const compile_job& job : {next_job(), next_job()}) finish(job, 2.0);
  EXPECT_EQ(take_batch(2, true)->getGroups().size(), 2U);
}

TEST_F(PoolActor, AnEvenStepExceedsTheShareOfATaskIfNoOtherGroupCanBecomeReady) {
  task_table two = table_of_softmax(the_task());
  task another = load_task(std::string(HONE_SOURCE_DIR) + "/configs/tasks/layer_norm.toml");
  two.add(std::move(another));
  tasks_ = std::make_shared<const task_table>(std::move(two));
  options_.draws.max_groups = 2;
  start();
  for (const char* code : {"a", "b"})
    submit(make_group({code}));  // a group of the first task, without a draw
  for (const compile_job& job : {next_job(), next_job()}) finish(job, 2.0);
  EXPECT_EQ(take_batch(2, true)->getGroups().size(), 2U);
}

TEST_F(PoolActor, GivesNoDrawWithoutADevice) {
  start();
  change_devices(the_device(), -1);
  request_draw();
  ASSERT_EQ(waiting_draws(), 1U);
  change_devices("another", 1);
  EXPECT_EQ(view(next_draw()->getDeviceType()), "another");
}

TEST_F(PoolActor, AComparisonWaitsForTheGroupsOfAbsentDevices) {
  start();
  change_devices("another", 1);
  commit(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  EXPECT_EQ(ask<std::uint32_t>(pool_, compare_atom_v, comparison({1}, 1)), 2U);
  compile_job later;
  for (int i = 0; i < 2; ++i) {
    request_draw();
    const draw_record draw = next_draw();
    group_record group = answer(draw, {"a"});
    capnp::MallocMessageBuilder scratch;
    scratch.setRoot(*group);
    scratch.getRoot<schema::RolloutGroup>().setOrigin(schema::RolloutGroup::Origin::COMPARISON);
    submit(copy_record<schema::RolloutGroup>(scratch.getRoot<schema::RolloutGroup>().asReader()));
    const compile_job job = next_job();
    if (view(draw->getDeviceType()) == the_device())
      finish(job, 2.0);
    else
      later = job;
  }
  change_devices("another", -1);
  tell(pool_, take_atom_v, static_cast<std::uint8_t>(Stage::COMPARISON), 2U, 2U, false,
       std::vector<std::uint64_t>{});
  EXPECT_FALSE(take([](const batch_record&) {})) << "half a comparison is none";
  change_devices("another", 1);
  finish(later, 2.0);
  EXPECT_EQ(take_batch(2, false, Stage::COMPARISON)->getGroups().size(), 2U);
}

TEST_F(PoolActor, AComparisonWithoutADeviceIsRefused) {
  start();
  change_devices(the_device(), -1);
  commit(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  tell(pool_, compare_atom_v, comparison({1}, 1));
  caf::error refused;
  EXPECT_TRUE(take([&](const caf::error& e) { refused = e; }));
  EXPECT_TRUE(refused == caf::sec::request_timeout);
}

TEST_F(PoolActor, ComparedVersionsShareTheirDraws) {
  start();
  commit(make_version(1, 0, 1), make_step(1, 0, {}));
  EXPECT_EQ(ask<std::uint32_t>(pool_, compare_atom_v, comparison({0, 1}, 3)), 6U);
  std::map<std::uint64_t, std::vector<std::uint64_t>> seeds;
  std::set<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    request_draw();
    const draw_record draw = next_draw();
    EXPECT_EQ(draw->getStage(), Stage::COMPARISON);
    seeds[draw->getPolicyVersion()].push_back(draw->getSeed());
    ids.insert(to_string(draw_id(draw->getId())));
  }
  EXPECT_EQ(seeds[0], seeds[1]);
  EXPECT_EQ(seeds[0].size(), 3U);
  EXPECT_EQ(ids.size(), 6U);
}

TEST_F(PoolActor, ReportsWhyThePoolCannotBeOpened) {
  write_file(options_.storage.folder, "a file where the folder should be");
  spawn();
  std::string reason;
  EXPECT_TRUE(take([&](fatal_atom, const std::string& why) { reason = why; }));
  EXPECT_THAT(reason, HasSubstr(options_.storage.folder.string()));
}

}  // namespace
}  // namespace hone
