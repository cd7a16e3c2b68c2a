#include "actors/gpu_lease.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/actor_test.hpp"
#include "tests/support/gpu_lender.hpp"

namespace hone {
namespace {

using namespace testing_support;

struct policy_state {
  policy_state() = default;
  gpu_lease lease;
};

// An actor with a piece of GPU work for every tick. It logs whether the GPU was leased to it.
caf::behavior policy(caf::stateful_actor<policy_state>* self, const shared_gpu& gpu,
                     const std::shared_ptr<lender_state>& lender, std::vector<std::string>* log) {
  self->state.lease = gpu_lease(gpu);
  return {
      [self](grant_atom, std::uint64_t number) {
        self->state.lease.granted(self, number);
        return done_atom_v;
      },
      [self](lease_atom) { self->state.lease.request_again(self); },
      [self, lender, log](tick_atom, int number) {
        self->state.lease.run(self, [lender, log, number] {
          log->push_back(std::to_string(number) +
                         (lender->is_leased ? " under a lease" : " at once"));
        });
      },
  };
}

class GpuLease : public actor_test {
 protected:
  void start(bool is_shared) {
    if (is_shared) lender_ = own(system_.spawn(gpu_lender, state_));
    const auto finish = [this] {
      log_.emplace_back(state_->is_leased ? "finished under the lease" : "finished too late");
    };
    policy_ = own(system_.spawn(policy, is_shared ? leased_gpu(lender_, finish) : shared_gpu{},
                                state_, &log_));
  }
  void work(int number) { tell(policy_, tick_atom_v, number); }

  std::shared_ptr<lender_state> state_ = std::make_shared<lender_state>();
  std::vector<std::string> log_;
  caf::actor lender_;
  caf::actor policy_;
};

TEST_F(GpuLease, WithoutASharedGpuWorkRunsAtOnce) {
  start(false);
  work(1);
  EXPECT_EQ(log_, std::vector<std::string>{"1 at once"});
}

TEST_F(GpuLease, OnASharedGpuEachPieceOfWorkHasItsOwnLeaseInOrder) {
  start(true);
  for (int i = 1; i <= 3; ++i) caf::anon_send(policy_, tick_atom_v, i);
  settle();
  EXPECT_EQ(log_, (std::vector<std::string>{"1 under a lease", "finished under the lease",
                                            "2 under a lease", "finished under the lease",
                                            "3 under a lease", "finished under the lease"}));
  EXPECT_FALSE(state_->is_leased);
  EXPECT_EQ(state_->leases, 3);
}

TEST_F(GpuLease, ARefusedRequestIsRepeatedAfterAPause) {
  state_->refusals = 2;
  start(true);
  work(1);
  EXPECT_TRUE(log_.empty());
  advance(timeouts::gpu_lease_retry);
  EXPECT_TRUE(log_.empty());
  advance(timeouts::gpu_lease_retry);
  EXPECT_EQ(log_, (std::vector<std::string>{"1 under a lease", "finished under the lease"}));
  EXPECT_EQ(state_->leases, 1);
}

TEST_F(GpuLease, AGrantThatWasNotRequestedIsIgnored) {
  state_->refusals = 1;
  start(true);
  work(1);
  for (const std::uint64_t number : {0, 17}) {
    ask<done_atom>(caf::actor_cast<lessee_actor>(policy_), grant_atom_v, number);
    EXPECT_TRUE(log_.empty());
  }
  advance(timeouts::gpu_lease_retry);
  EXPECT_EQ(log_, (std::vector<std::string>{"1 under a lease", "finished under the lease"}));
}

}  // namespace
}  // namespace hone
