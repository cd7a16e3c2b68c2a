#include "actors/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "policy/work_progress.hpp"
#include "tests/support/actor_system.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/pool_records.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr auto limit = std::chrono::seconds(20);

// A device that counts its verifications and fails when the test says so.
class counting_device final : public device {
 public:
  struct what_happened {
    std::atomic<int> verified = 0;
    std::atomic<bool> breaks = false;
  };
  explicit counting_device(std::shared_ptr<what_happened> seen) : seen_(std::move(seen)) {}
  const record<schema::DeviceType>& type() const override { return type_; }
  const std::string& name() const override { return name_; }
  record<schema::Verdict> verify(const schema::VerifyJob::Reader& /*job*/, const task& /*t*/,
                                 std::uint64_t /*seed*/) override {
    if (seen_->breaks) throw std::runtime_error("the device fell over");
    ++seen_->verified;
    return record_builder<schema::Verdict>().finish();
  }
  record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& /*job*/,
                                      const task& /*t*/, std::uint64_t /*seed*/) override {
    return record_builder<schema::Measurement>().finish();
  }
  task_report check_task(const task& /*t*/) override { return {}; }

 private:
  std::string name_ = "counting";
  device_type_record type_ = record_builder<schema::DeviceType>().finish();
  std::shared_ptr<what_happened> seen_;
};

// The test takes the place of the verifier, and in some tests of the lessee.
class DeviceActor : public testing::Test {
 protected:
  DeviceActor()
      : system_(actor_settings()),
        me_(system_),
        seen_(std::make_shared<counting_device::what_happened>()) {
    tasks_ = std::make_shared<const task_table>(table_of_softmax());
    device_ = system_.spawn<caf::detached>(
        device_behavior, std::string("device node test"), tasks_, [seen = seen_] {
          return std::unique_ptr<device>(std::make_unique<counting_device>(seen));
        });
  }
  ~DeviceActor() override { caf::anon_send_exit(device_, caf::exit_reason::kill); }
  verify_job job(bool of_known_task = true) const {
    record_builder<schema::VerifyJob> j;
    auto header = j->initHeader();
    (of_known_task ? tasks_->all().front()->id : task_id{1, 2}).store(header.initTaskId());
    return j.finish();
  }
  // Requests a verdict. Returns the text of the error, or an empty string if a verdict came.
  std::string verify(const verify_job& j) {
    std::string problem;
    me_->request(device_, limit, verify_atom_v, j)
        .receive([](const verdict_record&) {},
                 [&](const caf::error& e) { problem = system_.render(e); });
    return problem;
  }

  caf::actor_system system_;
  caf::scoped_actor me_;
  std::shared_ptr<counting_device::what_happened> seen_;
  std::shared_ptr<const task_table> tasks_;
  device_actor device_;
};

TEST_F(DeviceActor, ReturnsTheVerdictOfItsDevice) {
  EXPECT_EQ(verify(job()), "");
  EXPECT_EQ(seen_->verified, 1);
  me_->request(device_, limit, status_atom_v)
      .receive([](const actor_status_record& status) { EXPECT_EQ(status->getProcessed(), 1U); },
               [](const caf::error&) { ADD_FAILURE(); });
}

TEST_F(DeviceActor, SurvivesAnUnknownTask) {
  EXPECT_THAT(verify(job(false)), HasSubstr("does not have the task"));
  EXPECT_EQ(verify(job()), "");
}

TEST_F(DeviceActor, ADeviceThatFailsEndsItsActorWithTheReason) {
  seen_->breaks = true;
  me_->monitor(device_);
  EXPECT_THAT(verify(job()), HasSubstr("fell over"));
  bool is_down = false;
  me_->receive(
      [&](const caf::down_msg& down) {
        is_down = system_.render(down.reason).find("fell over") != std::string::npos;
      },
      caf::after(limit) >> [] {});
  EXPECT_TRUE(is_down);
}

TEST_F(DeviceActor, DoesNothingElseDuringALease) {
  (void)me_->request(device_, limit, lease_atom_v, std::uint64_t{7}, std::uint32_t{20000});
  (void)me_->request(device_, limit, verify_atom_v, job());
  me_->receive(
      [&](grant_atom, std::uint64_t number) {
        EXPECT_EQ(number, 7U);
        // The request that waits behind the lease is not served during it.
        EXPECT_FALSE(
            eventually([&] { return seen_->verified > 0; }, std::chrono::milliseconds(100)));
        return done_atom_v;
      },
      caf::after(limit) >> [] { FAIL() << "no lease was granted"; });
  EXPECT_TRUE(eventually([&] { return seen_->verified == 1; }));
}

TEST_F(DeviceActor, ContinuesWhenALesseeDies) {
  std::atomic<bool> was_leased = false;
  system_.spawn([&was_leased, device = device_](caf::event_based_actor* self) -> caf::behavior {
    self->request(device, limit, lease_atom_v, std::uint64_t{1}, std::uint32_t{600000})
        .then([](done_atom) {}, [](const caf::error&) {});
    return {[&was_leased](grant_atom, std::uint64_t) -> caf::result<done_atom> {
      was_leased = true;
      throw std::runtime_error("out of memory");
    }};
  });
  ASSERT_TRUE(eventually([&] { return was_leased.load(); }));
  EXPECT_EQ(verify(job()), "");
}

TEST_F(DeviceActor, ContinuesIfTheLesseeIsDeadAlready) {
  const auto dead = system_.spawn([device = device_](caf::event_based_actor* self) {
    self->request(device, limit, lease_atom_v, std::uint64_t{1}, std::uint32_t{600000})
        .then([](done_atom) {}, [](const caf::error&) {});
    self->quit();
  });
  EXPECT_EQ(verify(job()), "");
}

TEST_F(DeviceActor, WaitsForALesseeAsLongAsItMakesProgress) {
  (void)me_->request(device_, limit, lease_atom_v, std::uint64_t{7}, std::uint32_t{100});
  me_->receive(
      [&](grant_atom, std::uint64_t) {
        const counted_work work("test");
        for (int i = 0; i < 10; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          note_progress();
        }
        return done_atom_v;
      },
      caf::after(limit) >> [] { FAIL() << "no lease was granted"; });
  EXPECT_EQ(verify(job()), "") << "the lease took five times its limit";
}

TEST_F(DeviceActor, FailsIfALesseeMakesNoProgress) {
  me_->monitor(device_);
  const auto endless =
      system_.spawn([device = device_](caf::event_based_actor* self) -> caf::behavior {
        self->request(device, limit, lease_atom_v, std::uint64_t{1}, std::uint32_t{50})
            .then([](done_atom) {}, [](const caf::error&) {});
        return {[self](grant_atom, std::uint64_t) -> caf::result<done_atom> {
          return self->make_response_promise<done_atom>();
        }};
      });
  std::string reason;
  me_->receive(
      [&](const caf::down_msg& down) { reason = system_.render(down.reason); },
      caf::after(limit) >> [] { FAIL() << "the device goes on while the policy computes"; });
  EXPECT_THAT(reason, HasSubstr("has made no progress for 50 ms"));
  caf::anon_send_exit(endless, caf::exit_reason::kill);
}

}  // namespace
}  // namespace hone
