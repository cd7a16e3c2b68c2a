#include "actors/work_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/job_headers.hpp"
#include "messages/names.hpp"
#include "tests/support/actor_test.hpp"

namespace hone {
namespace {

compile_job job(std::uint64_t number, const std::string& device_type, double known_score = 0,
                std::uint64_t deadline_ms = ~std::uint64_t{0}) {
  record_builder<schema::CompileJob> j;
  auto header = j->initHeader();
  measurement_id{number, 1}.store(header.initMeasurementId());
  variant_id{number, 2}.store(header.initVariantId());
  task_id{1, 1}.store(header.initTaskId());
  header.setDeviceType(device_type);
  header.setAttempt(1);
  header.setKnownScore(known_score);
  header.setDeadlineMs(deadline_ms);
  record_builder<schema::DeviceType> type;
  type->setName(device_type);
  j->setDeviceType(*type.finish());
  j->setPython("def forward(): pass");
  return j.finish();
}

std::uint64_t number_of(const compile_job& j) {
  return measurement_id(j->getHeader().getMeasurementId()).high;
}

benchmark_job confirmation(std::uint64_t number, const std::string& device_type,
                           const std::string& measured_by) {
  record_builder<schema::BenchmarkJob> j;
  auto header = j->initHeader();
  measurement_id{number, 1}.store(header.initMeasurementId());
  variant_id{number, 2}.store(header.initVariantId());
  task_id{1, 1}.store(header.initTaskId());
  header.setDeviceType(device_type);
  header.setDeadlineMs(~std::uint64_t{0});
  if (!measured_by.empty()) {
    j->initFirst().setNode("node");
    j->getFirst().setDevice(measured_by);
  }
  return j.finish();
}

compiler_actor::behavior_type worker(compiler_actor::pointer self,
                                     std::vector<compile_job>* received) {
  return {
      [received](const compile_job& j) { received->push_back(j); },
      [self](leave_atom) { self->quit(); },
      [](status_atom) { return activity("probe", "probe").report(); },
  };
}

class WorkQueue : public testing_support::actor_test {
 protected:
  WorkQueue()
      : queue_(own(system_.spawn(work_queue_behavior<compile_job>, std::string("compile"),
                                 caf::actor_cast<pool_actor>(me())))) {}
  // Starts a worker that takes `credits` jobs of the given device types at a time.
  compiler_actor join(std::vector<compile_job>& received, std::vector<std::string> types,
                      std::uint32_t credits) {
    auto w = own(system_.spawn(worker, &received));
    settle();
    as(w, caf::make_message(pull_atom_v, std::move(types), credits));
    return w;
  }
  void done_as(const compiler_actor& w, const compile_job& j) {
    const measurement_id id(j->getHeader().getMeasurementId());
    as(w, caf::make_message(done_atom_v, id.high, id.low));
  }
  // Sends a message to the queue with this worker as its sender.
  void as(const compiler_actor& w, const caf::message& message) {
    caf::actor_cast<caf::abstract_actor*>(queue_)->enqueue(
        caf::actor_cast<caf::strong_actor_ptr>(w), caf::make_message_id(), message, nullptr);
    settle();
  }
  void put(const compile_job& j) {
    caf::anon_send(queue_, put_atom_v, j);
    settle();
  }
  static std::vector<std::uint64_t> numbers(const std::vector<compile_job>& jobs) {
    std::vector<std::uint64_t> all;
    for (const compile_job& j : jobs) all.push_back(number_of(j));
    return all;
  }

  compile_queue_actor queue_;
};

using numbers_list = std::vector<std::uint64_t>;

TEST_F(WorkQueue, SendsAWorkerNoMoreJobsThanItHasCredits) {
  std::vector<compile_job> got;
  const auto w = join(got, {"a"}, 2);
  for (std::uint64_t i = 1; i <= 4; ++i) put(job(i, "a"));
  EXPECT_EQ(numbers(got), (numbers_list{1, 2}));
  done_as(w, got[0]);
  EXPECT_EQ(numbers(got), (numbers_list{1, 2, 3}));
}

TEST_F(WorkQueue, SendsJobsOnlyToWorkersOfTheirDeviceType) {
  std::vector<compile_job> a, any;
  put(job(1, "b"));
  const auto wa = join(a, {"a"}, 4);
  EXPECT_TRUE(a.empty());
  const auto wb = join(any, {"*"}, 4);
  EXPECT_THAT(numbers(any), testing::ElementsAre(1))
      << "a worker of all types takes the jobs that no other worker serves";
}

TEST_F(WorkQueue, AWorkerOfAllTypesServesThemInTurn) {
  std::vector<compile_job> got;
  const auto w = join(got, {"*"}, 1);
  for (std::uint64_t i = 1; i <= 3; ++i) put(job(i, "a"));
  for (std::uint64_t i = 11; i <= 13; ++i) put(job(i, "b"));
  for (std::size_t i = 0; i < 5; ++i) done_as(w, got[i]);
  EXPECT_THAT(numbers(got), testing::UnorderedElementsAre(1, 2, 3, 11, 12, 13));
  const auto order = numbers(got);
  EXPECT_GT(order[1], 10U) << "the type that has waited";
  EXPECT_LT(order[2], 10U);
  EXPECT_GT(order[3], 10U);
}

TEST_F(WorkQueue, SendsTheJobsOfALostWorkerToAnotherWithTheNextAttempt) {
  std::vector<compile_job> first, second;
  const auto w1 = join(first, {"a"}, 2);
  put(job(1, "a"));
  put(job(2, "a"));
  put(job(3, "a"));
  ASSERT_EQ(first.size(), 2U);
  kill(w1);
  const auto w2 = join(second, {"a"}, 8);
  EXPECT_THAT(numbers(second), testing::UnorderedElementsAre(1, 2, 3));
  for (const compile_job& j : second)
    EXPECT_EQ(j->getHeader().getAttempt(), number_of(j) == 3 ? 1U : 2U);
}

TEST_F(WorkQueue, CountsNoAttemptForAWorkerThatHasLeft) {
  std::vector<compile_job> first, second;
  const auto w1 = join(first, {"a"}, 1);
  put(job(1, "a"));
  caf::anon_send(w1, leave_atom_v);
  settle();
  const auto w2 = join(second, {"a"}, 1);
  ASSERT_EQ(numbers(second), (numbers_list{1}));
  EXPECT_EQ(second[0]->getHeader().getAttempt(), 1U);
}

TEST_F(WorkQueue, CountsNoAttemptForFiveWorkersThatWereLostWithTheirNodes) {
  put(job(1, "a"));
  constexpr int unblamed = 5;
  for (int loss = 0; loss <= unblamed + 1; ++loss) {
    std::vector<compile_job> got;
    const auto w = join(got, {"a"}, 1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0]->getHeader().getAttempt(), loss <= unblamed ? 1U : 2U) << loss;
    caf::anon_send_exit(w, caf::exit_reason::remote_link_unreachable);
    settle();
  }
}

TEST_F(WorkQueue, ReportsAJobToThePoolAfterItsThirdLostWorker) {
  put(job(1, "a"));
  for (int death = 0; death < 3; ++death) {
    std::vector<compile_job> got;
    const auto w = join(got, {"a"}, 1);
    ASSERT_EQ(got.size(), 1U);
    kill(w);
  }
  EXPECT_TRUE(take([](close_atom, const evaluation_record& e) {
    EXPECT_EQ(e->getOutcome(), Outcome::INFRASTRUCTURE);
    EXPECT_EQ(measurement_id(e->getMeasurementId()).high, 1U);
  }));
}

TEST_F(WorkQueue, PassesAnEvaluationOnAndGivesItsWorkerTheNextJob) {
  std::vector<compile_job> got;
  const auto w = join(got, {"a"}, 1);
  put(job(1, "a"));
  put(job(2, "a"));
  ASSERT_EQ(numbers(got), (numbers_list{1}));
  caf::actor_cast<caf::abstract_actor*>(queue_)->enqueue(
      caf::actor_cast<caf::strong_actor_ptr>(w), caf::make_message_id(),
      caf::make_message(close_atom_v,
                        close_job(got[0]->getHeader(), Outcome::COMPILE_ERROR, "", "no such type")),
      nullptr);
  settle();
  EXPECT_TRUE(take([](close_atom, const evaluation_record& e) {
    EXPECT_EQ(e->getOutcome(), Outcome::COMPILE_ERROR);
    EXPECT_EQ(measurement_id(e->getMeasurementId()).high, 1U);
  }));
  EXPECT_EQ(numbers(got), (numbers_list{1, 2}));
  kill(w);
  const auto next = join(got, {"a"}, 1);
  EXPECT_EQ(numbers(got), (numbers_list{1, 2, 2})) << "the first one has ended";
}

TEST_F(WorkQueue, PrefersFirstMeasurementsButTakesEverySixteenthJobFromRepeats) {
  for (std::uint64_t i = 1; i <= 3; ++i) put(job(100 + i, "a", 1.5));
  for (std::uint64_t i = 1; i <= 20; ++i) put(job(i, "a"));
  std::vector<compile_job> got;
  const auto w = join(got, {"a"}, 23);
  EXPECT_EQ(numbers(got), (numbers_list{1,  2,  3,  4,  5,   6,  7,  8,  9,  10, 11,
                                        12, 13, 14, 15, 101, 16, 17, 18, 19, 20}));
}

TEST_F(WorkQueue, HandsOutOneRepeatAtATimeWhereNothingElseIsLeft) {
  std::vector<compile_job> got, other;
  const auto w = join(got, {"a"}, 4);
  put(job(1, "a"));
  for (std::uint64_t i = 1; i <= 3; ++i) put(job(100 + i, "a", 1.5));
  EXPECT_EQ(numbers(got), (numbers_list{1}));
  done_as(w, got[0]);
  EXPECT_EQ(numbers(got), (numbers_list{1, 101})) << "a line of repeats would block the GPU";
  const auto idle = join(other, {"a"}, 4);
  EXPECT_EQ(numbers(other), (numbers_list{102}));
  put(job(2, "a"));
  EXPECT_EQ(numbers(got).size() + numbers(other).size(), 4U) << "other jobs fill the credits";
  done_as(w, got[1]);
  done_as(idle, other[0]);
  EXPECT_EQ(numbers(got).size() + numbers(other).size(), 5U) << "and 103 follows";
}

TEST_F(WorkQueue, HandsOutARepeatBesideJobsOfAnotherType) {
  std::vector<compile_job> got;
  const auto w = join(got, {"*"}, 4);
  for (std::uint64_t i = 1; i <= 2; ++i) put(job(i, "b"));
  for (std::uint64_t i = 1; i <= 2; ++i) put(job(100 + i, "a", 1.5));
  EXPECT_EQ(numbers(got), (numbers_list{1, 2, 101}));
  done_as(w, got[2]);
  EXPECT_EQ(numbers(got), (numbers_list{1, 2, 101, 102}));
}

TEST_F(WorkQueue, DropsCancelledJobsThatNoWorkerHas) {
  std::vector<compile_job> got;
  const auto w = join(got, {"a"}, 1);
  for (std::uint64_t i = 1; i <= 3; ++i) put(job(i, "a"));
  const std::vector<measurement_id> cancelled = {
      measurement_id(job(1, "a")->getHeader().getMeasurementId()),
      measurement_id(job(2, "a")->getHeader().getMeasurementId())};
  caf::anon_send(queue_, cancel_atom_v, halves_of(cancelled));
  settle();
  done_as(w, got[0]);
  EXPECT_EQ(numbers(got), (numbers_list{1, 3}));
}

TEST_F(WorkQueue, DropsJobsPastTheirDeadline) {
  put(job(1, "a", 0, 1));
  put(job(2, "a"));
  std::vector<compile_job> got;
  const auto w = join(got, {"a"}, 4);
  EXPECT_EQ(numbers(got), (numbers_list{2}));
}

// A queue of benchmark jobs with two workers, whose devices are "fast" and "slow". The job's number
// is in `got` of the worker that has it.
class Confirmations : public testing_support::actor_test {
 protected:
  Confirmations()
      : queue_(own(system_.spawn(work_queue_behavior<benchmark_job>, std::string("benchmark"),
                                 caf::actor_cast<pool_actor>(me())))) {}
  using worker_type = worker_actor<benchmark_job>;
  static worker_type::behavior_type worker(worker_type::pointer self,
                                           std::vector<std::uint64_t>* received) {
    return {
        [received](const benchmark_job& j) {
          received->push_back(measurement_id(j->getHeader().getMeasurementId()).high);
        },
        [self](leave_atom) { self->quit(); },
        [](status_atom) { return activity("probe", "probe").report(); },
    };
  }
  worker_type join(const std::string& device, std::vector<std::uint64_t>& received,
                   std::uint32_t credits) {
    const auto w = own(system_.spawn(worker, &received));
    pull(w, device, credits);
    return w;
  }
  void pull(const worker_type& w, const std::string& device, std::uint32_t credits) {
    const std::vector<std::string> types = {"a", single_device("node", device)};
    caf::actor_cast<caf::abstract_actor*>(queue_)->enqueue(
        caf::actor_cast<caf::strong_actor_ptr>(w), caf::make_message_id(),
        caf::make_message(pull_atom_v, types, credits), nullptr);
    settle();
  }
  void put(std::uint64_t number, const std::string& measured_by = "") {
    caf::anon_send(queue_, put_atom_v, confirmation(number, "a", measured_by));
    settle();
  }

  benchmark_queue_actor queue_;
};

TEST_F(Confirmations, WaitForAnotherDeviceWithoutKeepingTheirOwnFromOtherJobs) {
  std::vector<std::uint64_t> fast, slow;
  const auto slow_one = join("slow", slow, 1);
  put(1);
  ASSERT_EQ(slow, numbers_list{1}) << "it is busy from now on";
  join("fast", fast, 8);
  put(2, "fast");
  put(3);
  put(4);
  EXPECT_EQ(fast, (numbers_list{3, 4}));
  pull(slow_one, "slow", 1);
  EXPECT_EQ(slow, (numbers_list{1, 2}));
}

TEST_F(Confirmations, AreMadeByTheirOwnDeviceIfThereIsNoOther) {
  std::vector<std::uint64_t> fast;
  join("fast", fast, 8);
  put(1, "fast");
  put(2);
  EXPECT_EQ(fast, (numbers_list{1, 2}));
}

}  // namespace
}  // namespace hone
