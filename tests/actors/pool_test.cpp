#include "actors/pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/actor_system.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr auto limit = std::chrono::seconds(20);

// The test is everybody else: generator, queue, learner and supervisor.
class PoolActor : public testing::Test {
 protected:
  PoolActor() : system_(actor_settings()), me_(system_) {
    tasks_ = std::make_shared<const task_table>(table_of_softmax(the_task()));
    options_.storage.folder = folder_ / "pool";
    options_.storage.judge_version = 1;
    options_.draws = {1, 2, 600000};
    options_.acknowledgements = folder_ / "acknowledged";
  }
  ~PoolActor() override {
    if (pool_) caf::anon_send_exit(pool_, caf::exit_reason::kill);
  }

  caf::actor me() { return caf::actor_cast<caf::actor>(me_); }
  void start() {
    pool_ = system_.spawn(pool_shell, options_, tasks_, me());
    me_->send(pool_, connect_atom_v, caf::actor_cast<compile_queue>(me()));
    me_->send(pool_, device_atom_v, make_device_type(), std::int32_t{1});
    commit(make_version(0, 0, 0), make_step(0, 0, {}));
  }
  template <class Result, class... Words>
  Result ask(const Words&... words) {
    Result result{};
    me_->request(pool_, limit, words...)
        .receive([&](const Result& r) { result = r; },
                 [&](const caf::error& e) { ADD_FAILURE() << system_.render(e); });
    return result;
  }
  void commit(const version_record& version, const step_record& step) {
    ask<done_atom>(commit_atom_v, version, step);
  }
  void submit(const group_record& group) { ask<done_atom>(submit_atom_v, group); }
  compile_job next_job() {
    compile_job job;
    me_->receive([&](put_atom, const compile_job& j) { job = j; },
                 caf::after(limit) >> [] { ADD_FAILURE() << "no job came"; });
    return job;
  }
  void finish(const compile_job& job, double score) {
    me_->send(pool_, close_atom_v, make_result(*job, score));
  }
  // Somebody who waits for a draw; whoever it is passes it on to the test.
  void ask_for_a_draw() {
    system_.spawn([pool = pool_, to = me()](caf::event_based_actor* self) {
      self->request(pool, limit, draw_atom_v).then([self, to](const draw_record& draw) {
        self->send(to, draw);
      });
    });
  }
  draw_record next_draw() {
    draw_record draw;
    me_->receive([&](const draw_record& d) { draw = d; },
                 caf::after(limit) >> [] { ADD_FAILURE() << "no draw came"; });
    return draw;
  }
  batch_record take(std::uint32_t groups, bool is_even, Stage stage = Stage::CONTRASTIVE) {
    return ask<batch_record>(take_atom_v, static_cast<std::uint8_t>(stage), groups, groups,
                             is_even);
  }
  std::size_t waiting_askers() { return ask<actor_status_record>(status_atom_v)->getQueued(); }

  temporary_folder folder_;
  caf::actor_system system_;
  caf::scoped_actor me_;
  std::shared_ptr<const task_table> tasks_;
  pool_actor_options options_;
  pool_actor pool_;
};

// The group that answers a draw.
group_record answer(const draw_record& draw, const std::vector<std::string>& codes) {
  const group_record group = make_group(codes);
  capnp::MallocMessageBuilder scratch;
  scratch.setRoot(*group);
  scratch.getRoot<schema::RolloutGroup>().setDraw(*draw);
  return copy_record<schema::RolloutGroup>(scratch.getRoot<schema::RolloutGroup>().asReader());
}

TEST_F(PoolActor, AnswersOnceAGroupSurvivesAKill) {
  start();
  const auto group = make_group({"a", "b"});
  submit(group);
  EXPECT_TRUE(eventually([&] {
    return read_file(folder_ / "acknowledged")
               .find("group " + to_string(group_id(group->getId()))) != std::string::npos;
  }));
  me_->monitor(pool_);
  caf::anon_send_exit(pool_, caf::exit_reason::kill);
  me_->receive([](const caf::down_msg&) {},
               caf::after(limit) >> [] { FAIL() << "it does not end"; });
  pool_ = pool_actor();
  const pool again(options_.storage);
  EXPECT_EQ(again.in_flight(), 2U);
}

TEST_F(PoolActor, HoldsAnAskerUntilTheLearnerHasMadeRoom) {
  start();
  ask_for_a_draw();
  const draw_record first = next_draw();
  ask_for_a_draw();
  ASSERT_TRUE(eventually([&] { return waiting_askers() > 0; }));
  const group_record group = answer(first, {"a"});
  submit(group);
  EXPECT_EQ(waiting_askers(), 1U) << "its group waits for a result";
  finish(next_job(), 2.0);
  const auto batch = take(1, false);
  ASSERT_EQ(batch->getGroups().size(), 1U);
  EXPECT_EQ(waiting_askers(), 1U) << "the learner has it, but no step is durable";
  commit(make_version(1, 0, 1), make_step(1, 0, {group_id(group->getId())}));
  const draw_record second = next_draw();
  EXPECT_EQ(second->getPolicyVersion(), 1U);
  ASSERT_EQ(second->getExemplars().size(), 1U);
  EXPECT_EQ(second->getExemplars()[0].getScore(), 2.0);
}

TEST_F(PoolActor, AStepOfMoreGroupsThanThereAreTasksTakesSeveralOfATask) {
  options_.draws.max_groups = 3;
  start();
  for (const char* code : {"a", "b"}) {
    ask_for_a_draw();
    submit(answer(next_draw(), {code}));
  }
  for (const compile_job& job : {next_job(), next_job()}) finish(job, 2.0);
  EXPECT_EQ(take(2, true)->getGroups().size(), 2U);
}

TEST_F(PoolActor, AStepTakesMoreThanItsShareOfATaskWhereNothingElseCanCome) {
  task_table two = table_of_softmax(the_task());
  task another = load_task(std::string(HONE_SOURCE_DIR) + "/configs/tasks/layer_norm.toml");
  two.add(std::move(another));
  tasks_ = std::make_shared<const task_table>(std::move(two));
  options_.draws.max_groups = 2;
  start();
  for (const char* code : {"a", "b"})
    submit(make_group({code}));  // of one task, whatever was drawn
  for (const compile_job& job : {next_job(), next_job()}) finish(job, 2.0);
  EXPECT_EQ(take(2, true)->getGroups().size(), 2U);
}

TEST_F(PoolActor, GivesNoDrawWhereNoDeviceCouldJudgeIt) {
  start();
  me_->send(pool_, device_atom_v, make_device_type(), std::int32_t{-1});
  ask_for_a_draw();
  ASSERT_TRUE(eventually([&] { return waiting_askers() > 0; }));
  me_->send(pool_, device_atom_v, make_device_type("another"), std::int32_t{1});
  EXPECT_EQ(view(next_draw()->getDeviceType()), "another");
}

TEST_F(PoolActor, AComparisonEndsWithoutWhatHasGoneWithItsDevices) {
  start();
  me_->send(pool_, device_atom_v, make_device_type("another"), std::int32_t{1});
  commit(make_version(1, 0, 1, Stage::COMPARISON), make_step(1, 0, {}));
  EXPECT_EQ(ask<std::uint32_t>(compare_atom_v, std::vector<std::uint64_t>{1}, std::uint32_t{1}),
            2U);
  for (int i = 0; i < 2; ++i) {
    ask_for_a_draw();
    const draw_record draw = next_draw();
    group_record group = answer(draw, {"a"});
    capnp::MallocMessageBuilder scratch;
    scratch.setRoot(*group);
    scratch.getRoot<schema::RolloutGroup>().setOrigin(schema::RolloutGroup::Origin::COMPARISON);
    submit(copy_record<schema::RolloutGroup>(scratch.getRoot<schema::RolloutGroup>().asReader()));
    const compile_job job = next_job();
    if (view(draw->getDeviceType()) == the_device()) finish(job, 2.0);
  }
  me_->send(pool_, device_atom_v, make_device_type("another"), std::int32_t{-1});
  EXPECT_EQ(take(2, false, Stage::COMPARISON)->getGroups().size(), 1U);
}

TEST_F(PoolActor, ComparedVersionsWriteForTheSameDraws) {
  start();
  commit(make_version(1, 0, 1), make_step(1, 0, {}));
  EXPECT_EQ(ask<std::uint32_t>(compare_atom_v, std::vector<std::uint64_t>{0, 1}, std::uint32_t{3}),
            6U);
  std::map<std::uint64_t, std::vector<std::uint64_t>> seeds;
  std::set<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    ask_for_a_draw();
    const draw_record draw = next_draw();
    EXPECT_EQ(draw->getStage(), Stage::COMPARISON);
    seeds[draw->getPolicyVersion()].push_back(draw->getSeed());
    ids.insert(to_string(draw_id(draw->getId())));
  }
  EXPECT_EQ(seeds[0], seeds[1]);
  EXPECT_EQ(seeds[0].size(), 3U);
  EXPECT_EQ(ids.size(), 6U);
}

TEST_F(PoolActor, SaysWhyWhenItCannotBeOpened) {
  write_file(options_.storage.folder, "a file where the folder should be");
  pool_ = system_.spawn(pool_shell, options_, tasks_, me());
  std::string reason;
  me_->receive([&](fatal_atom, const std::string& why) { reason = why; },
               caf::after(limit) >> [] { FAIL() << "nobody hears of it"; });
  EXPECT_THAT(reason, HasSubstr(options_.storage.folder.string()));
}

}  // namespace
}  // namespace hone
