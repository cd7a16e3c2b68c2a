#include "actors/gpu_turns.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "tests/support/actor_system.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/gpu_lender.hpp"

namespace hone {
namespace {

using namespace testing_support;

// What a policy's actor did, as it looked from inside its work.
struct diary {
  std::mutex lock;
  std::vector<std::string> lines;
  void write(const std::string& line) {
    const std::lock_guard hold(lock);
    lines.push_back(line);
  }
  std::vector<std::string> all() {
    const std::lock_guard hold(lock);
    return lines;
  }
};

struct policy_state {
  policy_state() = default;
  gpu_turns turns;
};

// Has a piece of work for every tick, and says whether the GPU was its own.
caf::behavior policy(caf::stateful_actor<policy_state>* self, const shared_gpu& gpu,
                     const std::shared_ptr<lending>& lent, const std::shared_ptr<diary>& wrote) {
  self->state.turns = gpu_turns(gpu);
  return {
      [self](use_atom, std::uint64_t turn) {
        self->state.turns.use(self, turn);
        return done_atom_v;
      },
      [self](lease_atom) { self->state.turns.ask_again(self); },
      [self, lent, wrote](tick_atom, int number) {
        self->state.turns.take(self, [lent, wrote, number] {
          wrote->write(std::to_string(number) + (lent->is_lent ? " in its turn" : " at once"));
        });
      },
  };
}

class GpuTurns : public testing::Test {
 protected:
  GpuTurns()
      : system_(actor_settings()),
        lent_(std::make_shared<lending>()),
        wrote_(std::make_shared<diary>()) {}
  ~GpuTurns() override {
    for (const caf::actor& a : {policy_, lender_}) {
      if (a) caf::anon_send_exit(a, caf::exit_reason::kill);
    }
  }
  void start(bool shared) {
    if (shared) lender_ = system_.spawn<caf::detached>(gpu_lender, lent_);
    const shared_gpu gpu =
        shared ? gpu_lent_by(lender_,
                             [this] {
                               wrote_->write(lent_->is_lent ? "idle in its turn" : "idle too late");
                             })
               : shared_gpu{};
    policy_ = system_.spawn(policy, gpu, lent_, wrote_);
  }
  void work(int number) { caf::anon_send(policy_, tick_atom_v, number); }
  std::vector<std::string> lines(std::size_t count) {
    EXPECT_TRUE(eventually([&] { return wrote_->all().size() >= count; }));
    return wrote_->all();
  }

  caf::actor_system system_;
  std::shared_ptr<lending> lent_;
  std::shared_ptr<diary> wrote_;
  caf::actor lender_;
  caf::actor policy_;
};

TEST_F(GpuTurns, AloneOnTheGpuWorkIsDoneAtOnce) {
  start(false);
  work(1);
  EXPECT_EQ(lines(1), std::vector<std::string>{"1 at once"});
}

TEST_F(GpuTurns, OnASharedOneEveryPieceHasATurnAndTheyKeepTheirOrder) {
  start(true);
  for (int i = 1; i <= 3; ++i) work(i);
  EXPECT_EQ(lines(6),
            (std::vector<std::string>{"1 in its turn", "idle in its turn", "2 in its turn",
                                      "idle in its turn", "3 in its turn", "idle in its turn"}));
  EXPECT_TRUE(eventually([&] { return !lent_->is_lent; }));
  EXPECT_EQ(lent_->turns, 3);
}

TEST_F(GpuTurns, ADeviceThatIsBeingStartedAgainIsAskedAgain) {
  lent_->refusals = 2;
  start(true);
  work(1);
  work(2);
  EXPECT_EQ(lines(4), (std::vector<std::string>{"1 in its turn", "idle in its turn",
                                                "2 in its turn", "idle in its turn"}));
  EXPECT_EQ(lent_->turns, 2);
}

TEST_F(GpuTurns, ATurnThatNobodyAskedForIsNotUsed) {
  start(true);
  lent_->refusals = 1000000;
  work(1);
  caf::scoped_actor device(system_);
  for (const std::uint64_t turn : {0, 17})
    device
        ->request(caf::actor_cast<lessee_actor>(policy_), std::chrono::seconds(20), use_atom_v,
                  turn)
        .receive([](done_atom) {}, [](const caf::error&) { ADD_FAILURE(); });
  EXPECT_TRUE(wrote_->all().empty());
  lent_->refusals = 0;
  EXPECT_EQ(lines(2), (std::vector<std::string>{"1 in its turn", "idle in its turn"}));
}

}  // namespace
}  // namespace hone
