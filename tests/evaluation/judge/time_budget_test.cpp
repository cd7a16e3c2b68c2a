#include "evaluation/judge/time_budget.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hone {
namespace {

using std::chrono::milliseconds;

constexpr double second_ns = 1e9;
constexpr milliseconds two_seconds{2000};

// Uses virtual time, which only work() moves.
class TimeBudget : public testing::Test {
 protected:
  std::function<program_result<int>(time_point)> work(double ns) {
    return [this, ns](time_point) {
      now_ns_ += ns;
      return 5;
    };
  }
  bool is_spent() {
    const auto done = budget_.for_candidate(two_seconds, work(0));
    if (!done) {
      EXPECT_EQ(done.error().outcome, Outcome::TIMEOUT);
    }
    return !done;
  }

  double now_ns_ = 17 * second_ns;
  time_budget budget_{60 * second_ns, [this] { return now_ns_; }};
};

TEST_F(TimeBudget, IsSpentByTheCandidate) {
  EXPECT_EQ(budget_.for_candidate(two_seconds, work(59 * second_ns)), 5)
      << "the result of the work";
  EXPECT_FALSE(is_spent());
  EXPECT_NEAR(budget_.left_ns(), second_ns, 1);
  budget_.for_candidate(two_seconds, work(2 * second_ns));
  EXPECT_TRUE(is_spent());
}

TEST_F(TimeBudget, GrowsByFiveTimesWhatTheReferenceTakes) {
  budget_.for_reference(two_seconds, work(20 * second_ns));
  EXPECT_NEAR(budget_.left_ns(), 160 * second_ns, 1);
}

TEST_F(TimeBudget, IsNotSpentByTheJudge) {
  now_ns_ += 1000 * second_ns;
  EXPECT_NEAR(budget_.left_ns(), 60 * second_ns, 1);
}

TEST_F(TimeBudget, ChargesWorkThatThrows) {
  EXPECT_ANY_THROW(budget_.for_candidate(two_seconds, [this](time_point) -> program_result<int> {
    now_ns_ += 100 * second_ns;
    throw std::runtime_error("stopped");
  }));
  EXPECT_TRUE(is_spent());
}

TEST_F(TimeBudget, EndsACandidatesWorkWhenNoneIsLeft) {
  const auto allowed = [this](auto run) {
    milliseconds left{0};
    run([&](time_point deadline) -> program_result<void> {
      left = std::chrono::ceil<milliseconds>(deadline - time_point::clock::now());
      return {};
    });
    return left;
  };
  const auto of_candidate = [&](auto one) { return budget_.for_candidate(two_seconds, one); };
  const auto of_reference = [&](auto one) { return budget_.for_reference(two_seconds, one); };
  EXPECT_EQ(allowed(of_candidate), two_seconds);
  budget_.for_candidate(two_seconds, work(59.5 * second_ns));
  EXPECT_LE(allowed(of_candidate), milliseconds(501));
  EXPECT_EQ(allowed(of_reference), two_seconds) << "a reference has its own limit only";
}

}  // namespace
}  // namespace hone
