#include "evaluation/judge/time_budget.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr double second_ns = 1e9;

// Uses virtual time, which only work() moves.
class TimeBudget : public testing::Test {
 protected:
  std::function<void()> work(double ns) {
    return [this, ns] { now_ns_ += ns; };
  }
  bool is_spent() const {
    try {
      left_.check();
      return false;
    } catch (const timing_failure& e) {
      EXPECT_EQ(e.why.outcome, Outcome::TIMEOUT);
      return true;
    }
  }

  double now_ns_ = 17 * second_ns;
  time_budget left_{60 * second_ns, [this] { return now_ns_; }};
};

TEST_F(TimeBudget, IsSpentByTheCandidate) {
  work(59 * second_ns)();
  EXPECT_FALSE(is_spent());
  EXPECT_NEAR(left_.left_ns(), second_ns, 1);
  work(2 * second_ns)();
  EXPECT_TRUE(is_spent());
}

TEST_F(TimeBudget, GrowsByFiveTimesWhatTheReferenceTakes) {
  left_.for_reference(work(20 * second_ns));
  EXPECT_NEAR(left_.left_ns(), 160 * second_ns, 1);
  work(159 * second_ns)();
  EXPECT_FALSE(is_spent());
  work(2 * second_ns)();
  EXPECT_TRUE(is_spent());
}

TEST_F(TimeBudget, IsNotSpentByTheJudge) {
  left_.for_judge(work(1000 * second_ns));
  EXPECT_NEAR(left_.left_ns(), 60 * second_ns, 1);
}

TEST_F(TimeBudget, ChargesWorkThatThrows) {
  EXPECT_ANY_THROW(left_.for_judge([this] {
    work(100 * second_ns)();
    throw std::runtime_error("stopped");
  }));
  EXPECT_FALSE(is_spent());
}

TEST_F(TimeBudget, ReturnsTheResultOfTheWork) {
  EXPECT_EQ(left_.for_reference([] { return 5; }), 5);
}

}  // namespace
}  // namespace hone
