#include "actors/node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>

#include "actors/benchmarker.hpp"
#include "actors/device.hpp"
#include "actors/telemetry.hpp"
#include "actors/verifier.hpp"
#include "actors/work_queue.hpp"
#include "messages/versions.hpp"
#include "tests/support/actor_system.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/verifying_device.hpp"

namespace hone {
namespace {

using testing::HasSubstr;

join_record request(std::uint32_t schema, std::uint32_t judge) {
  record_builder<schema::JoinRequest> r;
  r->setSchemaVersion(schema);
  r->setJudgeVersion(judge);
  r->setNode("other");
  return r.finish();
}

join_record request_of(bool has_real, bool has_simulated) {
  record_builder<schema::JoinRequest> r;
  r->setSchemaVersion(schema_version);
  r->setJudgeVersion(judge_version);
  r->setNode("other");
  r->setHasRealDevices(has_real);
  r->setHasSimulatedDevices(has_simulated);
  return r.finish();
}

node_options with_device(schema::DeviceType::Kind kind) {
  record_builder<schema::DeviceType> type;
  type->setName("one");
  type->setKind(kind);
  node_options own;
  own.devices.push_back({"one", type.finish(), nullptr});
  return own;
}

TEST(JoiningANode, IsAllowedWithTheSameVersions) {
  EXPECT_EQ(find_join_problem(request(schema_version, judge_version), {}), "");
}

TEST(JoiningANode, IsRefusedWithAnotherSchemaVersion) {
  const std::string problem = find_join_problem(request(schema_version + 1, judge_version), {});
  EXPECT_THAT(problem, HasSubstr(std::to_string(schema_version + 1)));
  EXPECT_THAT(problem, HasSubstr("version " + std::to_string(schema_version)));
}

TEST(JoiningANode, IsRefusedWithAnotherJudgeVersion) {
  const std::string problem = find_join_problem(request(schema_version, judge_version + 1), {});
  EXPECT_THAT(problem, HasSubstr(std::to_string(judge_version + 1)));
  EXPECT_THAT(problem, HasSubstr("by version " + std::to_string(judge_version)));
}

TEST(JoiningANode, IsRefusedWithSimulatedDevicesWhereOthersMeasure) {
  node_options real = with_device(schema::DeviceType::Kind::CPU);
  const node_options simulated = with_device(schema::DeviceType::Kind::SIMULATED);
  EXPECT_THAT(find_join_problem(request_of(false, true), real), HasSubstr("made up"));
  EXPECT_THAT(find_join_problem(request_of(true, true), real), HasSubstr("made up"));
  EXPECT_THAT(find_join_problem(request_of(true, false), simulated), HasSubstr("made up"));
  EXPECT_EQ(find_join_problem(request_of(true, false), real), "");
  EXPECT_EQ(find_join_problem(request_of(false, true), simulated), "");
  EXPECT_EQ(find_join_problem(request_of(false, false), real), "");  // it only compiles
  const device_kinds joined_real{.has_real = true, .has_simulated = false};
  EXPECT_THAT(find_join_problem(request_of(false, true), {}, joined_real), HasSubstr("made up"))
      << "a head without devices, whose first node measures";
  EXPECT_THAT(find_join_problem(request_of(true, true), {}), HasSubstr("made up"));
  node_options resumed;
  resumed.kinds_of_scores = kinds_of(std::set<std::string>{"cpu-a", "h100-sm90"});
  EXPECT_THAT(find_join_problem(request_of(false, true), resumed), HasSubstr("made up"))
      << "a head without devices that has been started again";
  EXPECT_EQ(find_join_problem(request_of(true, false), resumed), "");
  resumed.kinds_of_scores = kinds_of(std::set<std::string>{"simulated-a"});
  EXPECT_EQ(find_join_problem(request_of(false, true), resumed), "");
  EXPECT_THAT(find_join_problem(request_of(true, false), resumed), HasSubstr("made up"));
  real.mixes_simulation = true;
  EXPECT_EQ(find_join_problem(request_of(false, true), real), "");
}

TEST(JoiningANode, IsRefusedWithoutBaselinesWhereTheRewardNeedsThem) {
  node_options own = with_device(schema::DeviceType::Kind::CPU);
  record_builder<schema::JoinRequest> none(*request_of(true, false));
  none->setTimesBaselines(false);
  const join_record request = none.finish();
  EXPECT_EQ(find_join_problem(request, own), "");
  own.needs_baselines = true;
  EXPECT_THAT(find_join_problem(request, own), HasSubstr("--no-baselines"));
  EXPECT_EQ(find_join_problem(request_of(true, false), own), "");
  record_builder<schema::JoinRequest> compiles(*request_of(false, false));
  compiles->setTimesBaselines(false);
  EXPECT_EQ(find_join_problem(compiles.finish(), own), "") << "it measures nothing";
}

class Node : public testing::Test {
 protected:
  Node()
      : system_(testing_support::actor_settings()),
        pool_(system_),
        failures_(std::make_shared<std::atomic<int>>(0)),
        waits_(std::make_shared<std::atomic<bool>>(false)) {
    tasks_ = std::make_shared<const task_table>(testing_support::table_of_softmax());
    record_builder<schema::DeviceType> type;
    type->setName("brittle");
    type_ = type.finish();
    const auto pool = caf::actor_cast<pool_actor>(caf::actor(pool_.ptr()));
    wiring_.pool = pool;
    wiring_.compiles =
        system_.spawn(work_queue_behavior<compile_job>, std::string("compile"), pool);
    wiring_.verifies = system_.spawn(work_queue_behavior<verify_job>, std::string("verify"), pool);
    wiring_.benchmarks =
        system_.spawn(work_queue_behavior<benchmark_job>, std::string("benchmark"), pool);
  }
  ~Node() override {
    for (const auto& a :
         {caf::actor_cast<caf::actor>(node_), caf::actor_cast<caf::actor>(watching_),
          caf::actor_cast<caf::actor>(wiring_.compiles),
          caf::actor_cast<caf::actor>(wiring_.verifies),
          caf::actor_cast<caf::actor>(wiring_.benchmarks)}) {
      if (a) caf::anon_send_exit(a, caf::exit_reason::kill);
    }
  }
  void start(std::size_t compilers = 0) {
    start({{"brittle", type_,
            [type = type_, failures = failures_, waits = waits_]() -> std::unique_ptr<device> {
              return std::make_unique<testing_support::verifying_device>(type, [failures, waits] {
                waits->wait(true);
                if (failures->fetch_sub(1) > 0) throw std::runtime_error("the device fell over");
                return Outcome::WRONG_RESULT;
              });
            },
            1}},
          compilers);
  }
  void start(std::vector<planned_device> devices, std::size_t compilers = 0) {
    node_options options;
    options.name = "test";
    options.compilers = compilers;
    options.log = [this](const std::string& line) {
      const std::lock_guard hold(lock_);
      log_ += line + "\n";
    };
    options.devices = std::move(devices);
    telemetry_options watches;
    watches.interval = std::chrono::milliseconds(20);
    watching_ = system_.spawn(telemetry_behavior, watches, pool_actor(), node_actor());
    node_ = system_.spawn(node_behavior, options, wiring_, tasks_, watching_);
  }
  void put_job(std::uint64_t number, bool timed = false) {
    record_builder<schema::VerifyJob> j;
    auto header = j->initHeader();
    measurement_id{number, 1}.store(header.initMeasurementId());
    variant_id{number, 2}.store(header.initVariantId());
    tasks_->all().front()->id.store(header.initTaskId());
    header.setDeviceType("brittle");
    header.setTimed(timed);
    header.setAttempt(1);
    header.setDeadlineMs(~std::uint64_t{0});
    j->initArtifact();
    caf::anon_send(wiring_.verifies, put_atom_v, j.finish());
  }
  std::optional<evaluation_record> next_result(
      std::chrono::seconds limit = std::chrono::seconds(20)) {
    std::optional<evaluation_record> result;
    receive_until([&] { return result.has_value(); }, result, limit);
    return result;
  }
  // Waits until so many devices are announced. A result of a device may arrive before it is,
  // because they come from different actors.
  bool has_devices(int count) {
    std::optional<evaluation_record> ignored;
    return receive_until([&] { return devices_ == count; }, ignored, std::chrono::seconds(20));
  }
  // Takes the pool's messages until the condition holds. Returns false if that takes too long.
  template <class Condition>
  bool receive_until(Condition holds, std::optional<evaluation_record>& result,
                     std::chrono::seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!holds() && std::chrono::steady_clock::now() < end) {
      pool_->receive(
          [&](close_atom, const evaluation_record& e) { result = e; },
          [&](device_atom, const device_type_record&, std::int32_t by) { devices_ += by; },
          caf::after(std::chrono::milliseconds(100)) >> [] {});
    }
    return holds();
  }
  // Jobs of a queue: those that wait, those that a worker has, and those that are done.
  using job_counts = std::array<std::uint64_t, 3>;
  template <class Queue>
  job_counts jobs_of(const Queue& queue) {
    job_counts counts{};
    pool_->request(queue, std::chrono::seconds(10), status_atom_v)
        .receive(
            [&](const actor_status_record& status) {
              counts = {status->getQueued(), status->getInFlight(), status->getProcessed()};
            },
            [](const caf::error&) {});
    return counts;
  }
  // Returns how often the actor was restarted, or -1 if telemetry has no status of it yet.
  int restarts_of(const std::string& name) {
    int restarts = -1;
    pool_->request(watching_, std::chrono::seconds(10), status_atom_v)
        .receive(
            [&](const std::vector<node_status_record>& nodes) {
              for (const auto actor : nodes.front()->getActors()) {
                if (view(actor.getName()) == name) restarts = static_cast<int>(actor.getRestarts());
              }
            },
            [](const caf::error&) {});
    return restarts;
  }
  std::string log() {
    const std::lock_guard hold(lock_);
    return log_;
  }

  caf::actor_system system_;
  caf::scoped_actor pool_;  // takes the place of the pool
  std::shared_ptr<std::atomic<int>> failures_;
  std::shared_ptr<std::atomic<bool>> waits_;  // the device does while this is true
  std::shared_ptr<const task_table> tasks_;
  device_type_record type_;
  node_wiring wiring_;
  telemetry_actor watching_;
  node_actor node_;
  int devices_ = 0;
  std::mutex lock_;
  std::string log_;
};

TEST_F(Node, EndsAfterTheJobsThatItHasWhenItRetires) {
  start(/*compilers=*/2);
  EXPECT_TRUE(has_devices(1));
  *waits_ = true;
  put_job(1);
  ASSERT_TRUE(testing_support::eventually([&] {
    return jobs_of(wiring_.verifies) == job_counts{0, 1, 0};
  }));
  caf::scoped_actor watching(system_);
  watching->monitor(node_);
  caf::anon_send(caf::actor_cast<working_node_actor>(node_), finish_atom_v);
  EXPECT_TRUE(has_devices(0));
  put_job(2);
  *waits_ = false;
  waits_->notify_all();
  const auto result = next_result();
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)->getOutcome(), Outcome::WRONG_RESULT);
  caf::error reason = caf::sec::runtime_error;
  watching->receive([&](const caf::down_msg& down) { reason = down.reason; },
                    caf::after(std::chrono::seconds(20)) >> [] {});
  EXPECT_FALSE(reason) << system_.render(reason);
  EXPECT_TRUE(testing_support::eventually([&] {
    return jobs_of(wiring_.verifies) == job_counts{1, 0, 1};
  })) << "the other job must wait for another node";
}

TEST_F(Node, ADeviceIsAnnouncedAndServesJobs) {
  start();
  put_job(1);
  const auto result = next_result();
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)->getOutcome(), Outcome::WRONG_RESULT);
  EXPECT_TRUE(has_devices(1));
}

TEST_F(Node, ADeviceMeasuresWhatItHasVerifiedWithoutAskingTheHeadAgain) {
  simulated_device_options all_pass;
  all_pass.ok_share = 1;
  all_pass.name = "brittle";
  planned_device one{"simulated:brittle", type_,
                     [all_pass] { return make_simulated_device(all_pass); }};
  start({one});
  put_job(1, true);
  const auto result = next_result();
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)->getOutcome(), Outcome::OK);
  EXPECT_EQ((*result)->getMeasurements().size(), 1U);
  EXPECT_EQ(jobs_of(wiring_.benchmarks), (job_counts{0, 0, 0}));
  EXPECT_TRUE(testing_support::eventually([&] {
    return jobs_of(wiring_.verifies) == job_counts{0, 0, 1};
  }));
}

TEST_F(Node, FinishesAMeasurementWhenItRetires) {
  simulated_device_options slow;
  slow.ok_share = 1;
  slow.name = "brittle";
  slow.verify_us = 0;
  slow.measure_us = 300'000;
  start({{"simulated:brittle", type_, [slow] { return make_simulated_device(slow); }}});
  put_job(1, true);
  ASSERT_TRUE(testing_support::eventually([&] {
    return jobs_of(wiring_.verifies) == job_counts{0, 1, 0};
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the verification is over
  caf::anon_send(caf::actor_cast<working_node_actor>(node_), finish_atom_v);
  const auto result = next_result();
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)->getMeasurements().size(), 1U) << "the benchmarker left before its verifier";
}

TEST_F(Node, AVerifierAndItsBenchmarkerEndWithEachOther) {
  for (const bool is_verifier_first : {false, true}) {
    const planned_device plan{"simulated:brittle", type_, [] { return make_simulated_device({}); }};
    const auto device =
        system_.spawn<caf::detached>(device_behavior, std::string("device"), tasks_, plan.make);
    const auto benchmarker =
        system_.spawn(benchmarker_behavior, std::string("test"), plan, device, wiring_);
    const auto verifier = system_.spawn(verifier_behavior, std::string("verifier"), plan, device,
                                        benchmarker, wiring_);
    caf::scoped_actor watching(system_);
    const auto one = caf::actor_cast<caf::actor>(verifier);
    const auto other = caf::actor_cast<caf::actor>(benchmarker);
    watching->monitor(is_verifier_first ? other : one);
    caf::anon_send_exit(is_verifier_first ? one : other, caf::exit_reason::kill);
    bool has_ended = false;
    watching->receive([&](const caf::down_msg&) { has_ended = true; },
                      caf::after(std::chrono::seconds(20)) >> [] {});
    EXPECT_TRUE(has_ended) << is_verifier_first;
    caf::anon_send_exit(device, caf::exit_reason::kill);
  }
}

TEST_F(Node, ADeviceThatFailsIsStartedAgainAndItsJobIsReported) {
  *failures_ = 1;
  start();
  ASSERT_TRUE(testing_support::eventually([&] { return restarts_of("device test brittle") == 0; }));
  put_job(1);
  const auto first = next_result();
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)->getOutcome(), Outcome::INFRASTRUCTURE)
      << "a failure of the device must not count against the variant";
  put_job(2);
  const auto second = next_result();
  ASSERT_TRUE(second) << "the device was not restarted";
  EXPECT_EQ((*second)->getOutcome(), Outcome::WRONG_RESULT);
  EXPECT_THAT(log(), HasSubstr("the device fell over"));
  EXPECT_EQ(devices_, 1) << "the device must be announced only once";
  EXPECT_TRUE(testing_support::eventually([&] { return restarts_of("device test brittle") == 1; }));
}

TEST_F(Node, ForwardsALeaseRequestToTheDevice) {
  start();
  (void)pool_->request(node_, std::chrono::seconds(20), lease_atom_v, std::string("brittle"),
                       std::uint64_t{3}, std::uint32_t{20000});
  std::uint64_t granted = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (granted == 0 && std::chrono::steady_clock::now() < end) {
    pool_->receive(
        [&](grant_atom, std::uint64_t number) {
          granted = number;
          return done_atom_v;
        },
        [](device_atom, const device_type_record&, std::int32_t) {},
        caf::after(std::chrono::milliseconds(100)) >> [] {});
  }
  EXPECT_EQ(granted, 3U);
}

TEST_F(Node, RefusesALeaseOfADeviceThatItDoesNotHave) {
  start();
  std::string problem;
  pool_
      ->request(node_, std::chrono::seconds(20), lease_atom_v, std::string("cuda:7"),
                std::uint64_t{1}, std::uint32_t{20000})
      .receive([](done_atom) {}, [&](const caf::error& e) { problem = system_.render(e); });
  EXPECT_THAT(problem, HasSubstr("no device cuda:7"));
}

}  // namespace
}  // namespace hone
