#include "evaluation/judge/process_bias.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/synthetic_sides.hpp"

namespace hone {
namespace {

using testing_support::noisy;
using testing_support::synthetic_side;

case_timing time(double candidate_ns, double reference_ns) {
  static random_stream random(3);
  static random_stream noise(4);
  synthetic_side candidate(sampled_side::role::candidate, noisy(noise, candidate_ns, 0.01));
  synthetic_side reference(sampled_side::role::reference, noisy(noise, reference_ns, 0.01));
  return time_pair(candidate, reference, testing_support::synthetic_rules(), random, nullptr);
}

TEST(ProcessBias, IsSubtracted) {
  // The candidate's process is three per cent faster at everything.
  const case_timing same = time(9.7e3, 10e3);
  const process_bias bias = bias_of(same);
  EXPECT_NEAR(bias.log_ratio, std::log(10 / 9.7), 0.005);
  EXPECT_GT(bias.half_width, 0);
  case_timing timing = time(4.85e3, 10e3);
  const double width = std::log(timing.ratio.range.high / timing.ratio.range.low);
  subtract_bias(bias, timing);
  EXPECT_NEAR(timing.ratio.speedup, 2, 0.02);
  EXPECT_NEAR(timing.reference_us, 9.7, 0.1);
  EXPECT_GT(std::log(timing.ratio.range.high / timing.ratio.range.low), width);
}

TEST(ProcessBias, IsZeroIfLongEqualProgramsMayBeEquallyFast) {
  case_timing same;
  same.reference_us = 26e3;
  same.log_ratios = {-0.054, -0.054, -0.054, 0, 0.054};  // of a call with two lengths
  same.ratio.range = {0.947, 1.056};
  EXPECT_EQ(bias_of(same).log_ratio, 0);
  EXPECT_NEAR(bias_of(same).half_width, 0.054, 0.001);
  same.log_ratios.push_back(-0.054);
  same.ratio.range = {0.947, 0.99};
  EXPECT_EQ(bias_of(same).log_ratio, -0.054);
  same.ratio.range = {0.947, 1.056};
  same.reference_us = 17;
  EXPECT_EQ(bias_of(same).log_ratio, -0.054);
}

TEST(ProcessBias, IsNotBelievedFromFewRoundsUnlessItIsLarge) {
  case_timing same;
  same.reference_us = 200e3;
  same.log_ratios = {0.01, 0.012, 0.02};
  same.ratio.range = {1.01, 1.02};
  EXPECT_EQ(bias_of(same).log_ratio, 0) << "three of a kind are chance";
  same.log_ratios = {0.1, 0.12, 0.2};
  EXPECT_EQ(bias_of(same).log_ratio, 0.12);
  same.log_ratios = {0.01, 0.01, 0.012, 0.012, 0.02, 0.02};
  EXPECT_EQ(bias_of(same).log_ratio, 0.012);
}

TEST(ProcessBias, OfLongCallsIsUncertainByWhatFewRoundsCannotShow) {
  case_timing same;
  same.reference_us = 50e3;
  same.log_ratios = {0.009, 0.01, 0.011};
  same.ratio.range = {std::exp(0.009), std::exp(0.011)};
  EXPECT_EQ(bias_of(same).half_width, unknown_bias().half_width);
  same.log_ratios = {-0.001, -0.001, 0, 0, 0.001, 0.001};
  same.ratio.range = {std::exp(-0.001), std::exp(0.001)};
  EXPECT_NEAR(bias_of(same).half_width, 0.001, 1e-6) << "six rounds show that there is none";
}

TEST(ProcessBias, ThatIsUnknownMakesADifferenceOfOnePerCentNone) {
  case_timing timing;
  timing.reference_us = 115.4e3;
  timing.candidate_us = 116.7e3;
  timing.ratio.range = {0.9875, 0.9905};  // as one program has shown it in two processes
  subtract_bias(unknown_bias(), timing);
  EXPECT_GT(timing.ratio.range.high, 1);
  timing.ratio.range = {1.029, 1.031};
  subtract_bias(unknown_bias(), timing);
  EXPECT_GT(timing.ratio.range.low, 1) << "three per cent are a difference";
}

TEST(ProcessBias, IsUncertainBesideALaunchBoundReference) {
  EXPECT_GE(beside_launch_bound({0.01, 0.001}).half_width, 0.03);
  EXPECT_EQ(beside_launch_bound({0.01, 0.001}).log_ratio, 0.01);
  EXPECT_EQ(beside_launch_bound({0.01, 0.2}).half_width, 0.2);
}

TEST(ProcessBias, OfABusyHostNeverRaisesAScore) {
  EXPECT_EQ(on_a_busy_host({-0.15, 0.02}).log_ratio, 0);
  EXPECT_EQ(on_a_busy_host({-0.15, 0.02}).half_width, 0.15);
  EXPECT_EQ(on_a_busy_host({0.15, 0.2}).log_ratio, 0.15);
  EXPECT_EQ(on_a_busy_host({0.15, 0.2}).half_width, 0.2);
}

}  // namespace
}  // namespace hone
