#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "evaluation/judge/verification.hpp"

namespace hone {
namespace {

// Returns what a plan asks for, from a reference that takes `ms`.
exactness ask(exactness_plan& plan, int ms = 0) {
  exactness asked = exactness::own_types;
  plan.expect([&](exactness how) {
    asked = how;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  });
  return asked;
}

TEST(ExactnessPlan, SavesFloat64ForDisagreementsOnceItHasTakenATenthOfASecond) {
  exactness_plan plan;
  EXPECT_EQ(ask(plan), exactness::own_types) << "nothing is known of the reference";
  EXPECT_EQ(ask(plan, 20), exactness::float64);
  EXPECT_EQ(ask(plan, 90), exactness::float64) << "20 ms of 100 are spent";
  EXPECT_FALSE(plan.take_float64()) << "the outputs are in float64 already";
  EXPECT_EQ(ask(plan), exactness::own_types);
  EXPECT_TRUE(plan.take_float64());
  EXPECT_FALSE(plan.take_float64()) << "a second disagreement is not due to exactness";
}

TEST(ExactnessPlan, SavesFloat64ForDisagreementsWithASlowReference) {
  exactness_plan plan;
  EXPECT_EQ(ask(plan, 10), exactness::own_types);
  EXPECT_TRUE(plan.is_reference_slow());
  EXPECT_EQ(ask(plan), exactness::own_types) << "the first call may have loaded code";
  EXPECT_FALSE(plan.is_reference_slow());
  EXPECT_EQ(ask(plan), exactness::float64);
}

}  // namespace
}  // namespace hone
