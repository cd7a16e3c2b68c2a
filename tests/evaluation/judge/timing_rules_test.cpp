#include "evaluation/judge/timing_rules.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <span>
#include <vector>

namespace hone {
namespace {

std::vector<double> noisy_logs(double speedup, double sigma, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, sigma);
  std::vector<double> logs(n);
  for (double& x : logs) x = std::log(speedup) + noise(random);
  return logs;
}

TEST(StoppingRule, RequiresTheLeastNumberOfRounds) {
  const timing_rules rules;
  const auto exact = noisy_logs(1.5, 0, 20, 1);
  EXPECT_EQ(decide(rules, std::span(exact).first(6), 1e8), timing_decision::go_on);
  EXPECT_EQ(decide(rules, std::span(exact).first(7), 1e8), timing_decision::settled);
  const auto nearly = noisy_logs(1.08, 0.01, 21, 1);
  EXPECT_EQ(decide(rules, std::span(nearly).first(20), 1e8), timing_decision::go_on);
  EXPECT_EQ(decide(rules, nearly, 1e8), timing_decision::settled);
}

TEST(StoppingRule, RequiresMoreRoundsForASmallDifference) {
  timing_rules rules;
  rules.near_equal = 0.02;
  rules.near_equal_rounds = 60;
  const auto nearly = noisy_logs(1.01, 0.001, 60, 1);
  EXPECT_EQ(decide(rules, std::span(nearly).first(20), 1e8), timing_decision::go_on);
  EXPECT_EQ(decide(rules, std::span(nearly).first(20), rules.clocked_budget_ns),
            timing_decision::settled)
      << "but only within the budget";
  EXPECT_EQ(decide(rules, nearly, 1e8), timing_decision::settled);
  const auto equal = noisy_logs(1, 0.01, 20, 1);
  EXPECT_EQ(decide(rules, equal, 1e8), timing_decision::settled) << "1 is in the interval";
  const auto twice = noisy_logs(2, 0.001, 20, 1);
  EXPECT_EQ(decide(rules, twice, 1e8), timing_decision::settled);
  rules.equal_log_ratio = std::log(2);
  EXPECT_EQ(decide(rules, twice, 1e8), timing_decision::settled)
      << "equal programs differ by as much in these processes";
  rules.equal_log_ratio = std::log(2.02);
  EXPECT_EQ(decide(rules, twice, 1e8), timing_decision::go_on);
}

TEST(StoppingRule, NeedsFewRoundsToConfirmAFirstMeasurement) {
  timing_rules rules = gpu_timing_rules();
  rules.expected_log_ratio = std::log(5);
  const auto as_expected = noisy_logs(5, 0.01, 7, 1);
  EXPECT_EQ(decide(rules, std::span(as_expected).first(6), 0), timing_decision::go_on);
  EXPECT_EQ(decide(rules, as_expected, 0), timing_decision::confirmed);
  EXPECT_EQ(decide(rules, noisy_logs(4.8, 0.001, 7, 1), 0), timing_decision::go_on);
  EXPECT_EQ(decide(rules, noisy_logs(4.8, 0.001, 14, 1), 0), timing_decision::settled);
  rules.equal_log_ratio = std::log(0.96);
  EXPECT_EQ(decide(rules, noisy_logs(4.8, 0.001, 7, 1), 0), timing_decision::confirmed)
      << "equal programs differ by as much in these processes";
  rules.expected_log_ratio.reset();
  EXPECT_EQ(decide(rules, as_expected, 0), timing_decision::go_on);
}

TEST(StoppingRule, ConfirmsVeryLongCallsInThreeRounds) {
  timing_rules rules = launch_bound_timing_rules(100e6);
  rules.expected_log_ratio = std::log(5);
  const double a_second = rules.clocked_budget_ns * 4;
  const auto nearly = noisy_logs(4.7, 0.01, 3, 1);  // another load of the host, not another program
  EXPECT_EQ(decide(rules, std::span(nearly).first(2), a_second), timing_decision::go_on);
  EXPECT_EQ(decide(rules, nearly, a_second), timing_decision::confirmed);
  EXPECT_EQ(decide(rules, nearly, 0.9 * a_second), timing_decision::go_on);
  EXPECT_EQ(decide(rules, noisy_logs(4.4, 0.01, 3, 1), a_second), timing_decision::go_on);
  for (const double call_ms : {2, 20}) {
    timing_rules by_length = rules_of_long_calls(gpu_timing_rules(), call_ms * 1e6);
    by_length.expected_log_ratio = std::log(5);
    const auto agreeing = noisy_logs(5, 0.01, 3, 1);
    EXPECT_EQ(decide(by_length, agreeing, 0) == timing_decision::confirmed, call_ms >= 20);
  }
}

TEST(StoppingRule, GivesUpOnHopelessCandidatesAfterThreeRounds) {
  const timing_rules rules;
  const auto slow = noisy_logs(0.15, 0.01, 3, 1);
  EXPECT_EQ(decide(rules, std::span(slow).first(2), 0), timing_decision::go_on);
  EXPECT_EQ(decide(rules, slow, 0), timing_decision::hopeless);
  const auto slowish = noisy_logs(0.25, 0.01, 3, 1);
  EXPECT_EQ(decide(rules, slowish, 0), timing_decision::go_on);
}

TEST(StoppingRule, SpendsTheDoubledBudgetBeforeItDecidesUnstable) {
  const timing_rules rules;
  const auto wild = noisy_logs(1.0, 0.6, 30, 5);
  EXPECT_EQ(decide(rules, wild, rules.clocked_budget_ns * 1.9), timing_decision::go_on);
  EXPECT_EQ(decide(rules, wild, rules.clocked_budget_ns * 2.1), timing_decision::unstable);
  const auto middling = noisy_logs(1.0, 0.18, 30, 5);  // between the two widths
  EXPECT_EQ(decide(rules, middling, rules.clocked_budget_ns * 2.1), timing_decision::settled);
}

TEST(StoppingRule, LetsLongCallsStopAfterFewerRoundsOnceTheBudgetIsUsed) {
  const timing_rules rules = gpu_timing_rules();
  const auto steady = noisy_logs(2.0, 0.001, 7, 5);
  EXPECT_EQ(decide(rules, steady, rules.clocked_budget_ns * 0.9), timing_decision::go_on);
  EXPECT_EQ(decide(rules, steady, rules.clocked_budget_ns * 1.1), timing_decision::settled);
  const auto fewer = noisy_logs(2.0, 0.001, 6, 5);
  EXPECT_EQ(decide(rules, fewer, rules.clocked_budget_ns * 3.9), timing_decision::go_on);
}

TEST(StoppingRule, NeedsSixRoundsOfVeryLongCallsIfTheseAgree) {
  const timing_rules rules = gpu_timing_rules();
  const double used_up = rules.clocked_budget_ns * 4.1;
  const auto steady = noisy_logs(2.0, 0.001, 6, 5);
  EXPECT_EQ(decide(rules, std::span(steady).first(5), used_up), timing_decision::go_on);
  EXPECT_EQ(decide(rules, steady, used_up), timing_decision::settled);
  const auto wider = noisy_logs(2.0, 0.02, 7, 5);
  EXPECT_EQ(decide(rules, std::span(wider).first(6), used_up), timing_decision::go_on);
  EXPECT_EQ(decide(rules, wider, used_up), timing_decision::settled) << "as of any long calls";
  EXPECT_EQ(decide(cpu_timing_rules(), steady, 4 * used_up), timing_decision::go_on);
}

TEST(StoppingRule, MakesMoreRoundsOfLongCallsBeforeADisturbedOneDecides) {
  const timing_rules rules = launch_bound_timing_rules();
  auto disturbed = noisy_logs(1.0, 0.001, 9, 5);
  disturbed[3] = std::log(0.6);
  const double used_up = rules.clocked_budget_ns * 9;
  EXPECT_EQ(decide(rules, std::span(disturbed).first(7), used_up), timing_decision::go_on);
  EXPECT_EQ(decide(rules, disturbed, used_up), timing_decision::settled)
      << "the interval of nine rounds leaves out the lowest and the highest";
  const auto wild = noisy_logs(1.0, 0.6, 14, 5);
  EXPECT_EQ(decide(rules, std::span(wild).first(13), used_up), timing_decision::go_on);
  EXPECT_EQ(decide(rules, wild, used_up), timing_decision::unstable);
}

TEST(StoppingRule, SpendsMoreOnTheGpuBeforeItDecidesUnstable) {
  const auto wild = noisy_logs(1.0, 0.6, 40, 5);
  const timing_rules gpu = gpu_timing_rules();
  EXPECT_EQ(decide(gpu, wild, gpu.clocked_budget_ns * 3.9), timing_decision::go_on);
  EXPECT_EQ(decide(gpu, wild, gpu.clocked_budget_ns * 4.1), timing_decision::unstable);
  const timing_rules launch_bound = launch_bound_timing_rules();
  EXPECT_EQ(decide(launch_bound, wild, gpu.clocked_budget_ns * 7.9), timing_decision::go_on);
  EXPECT_EQ(decide(launch_bound, wild, gpu.clocked_budget_ns * 8.1), timing_decision::unstable);
  const auto tame = noisy_logs(1.0, 0.005, 40, 5);
  EXPECT_EQ(decide(gpu, tame, gpu.clocked_budget_ns * 1.1), timing_decision::settled);
}

TEST(RulesOfLongCalls, SettleWithinTheBudgetAfterSevenRoundsThatAgree) {
  const timing_rules rules = rules_of_long_calls(gpu_timing_rules(), 2e6);
  const auto steady = noisy_logs(2.0, 0.001, 7, 5);
  EXPECT_EQ(decide(rules, std::span(steady).first(6), 1e7), timing_decision::go_on);
  EXPECT_EQ(decide(rules, steady, 1e7), timing_decision::settled);
  EXPECT_EQ(decide(rules, noisy_logs(2.0, 0.01, 7, 5), 1e7), timing_decision::go_on);
  EXPECT_EQ(decide(rules, noisy_logs(1.01, 0.001, 7, 5), 1e7), timing_decision::go_on)
      << "a small difference needs more";
  EXPECT_EQ(rules.new_parameters_one_in, 1U);
}

TEST(CalibrationRules, NeedFewRoundsOfLongCalls) {
  const auto steady = noisy_logs(1.0, 0.001, 42, 5);
  const auto rounds_of = [&](const timing_rules& rules) {
    std::size_t rounds = 1;
    while (decide(rules, std::span(steady).first(rounds), 0) == timing_decision::go_on) ++rounds;
    return rounds;
  };
  const timing_rules gpu = gpu_timing_rules();
  EXPECT_EQ(rounds_of(gpu_calibration_rules(gpu, bias_precision::fine)), 42U);
  EXPECT_EQ(rounds_of(gpu_calibration_rules(gpu, bias_precision::coarse)), 14U);
  EXPECT_EQ(rounds_of(gpu_calibration_rules(gpu, bias_precision::fine, true)), 6U);
}

TEST(ScreeningRules, AskForFewRoundsWhateverTheyShow) {
  const timing_rules rules = screening_rules(gpu_timing_rules());
  const auto rounds_of = [&](double speedup, double sigma) {
    const auto logs = noisy_logs(speedup, sigma, 40, 1);
    std::size_t rounds = 1;
    while (decide(rules, std::span(logs).first(rounds), 2e6 * static_cast<double>(rounds)) ==
           timing_decision::go_on)
      ++rounds;
    return rounds;
  };
  EXPECT_EQ(rounds_of(2, 0.001), 6U);
  EXPECT_EQ(rounds_of(1.005, 0.001), 6U) << "a small difference is no claim";
  EXPECT_GT(rounds_of(2, 0.05), 6U) << "noise needs more, within the budget";
  EXPECT_LE(rounds_of(2, 0.5), 20U);
  const auto wild = noisy_logs(2, 0.5, 40, 1);
  EXPECT_EQ(decide(rules, wild, 1e9), timing_decision::settled) << "the interval tells";
}

TEST(ScreeningRules, CheckCallsInTheSameWay) {
  const timing_rules full = gpu_timing_rules();
  const timing_rules rules = screening_rules(full);
  EXPECT_GT(rules.check_one_in, 0U);
  EXPECT_EQ(rules.suspicious_ratio, full.suspicious_ratio);
  EXPECT_EQ(rules.others_one_in, full.others_one_in);
}

TEST(ModuleRules, GiveShortCallsWideIntervalsAndLongOnesTheUsual) {
  const auto noisy = noisy_logs(1, 0.15, 60, 1);
  EXPECT_EQ(decide(gpu_timing_rules(), noisy, 1e9), timing_decision::unstable);
  EXPECT_EQ(decide(module_rules(gpu_timing_rules(), 10), noisy, 1e9), timing_decision::settled);
  EXPECT_EQ(decide(module_rules(gpu_timing_rules(), 1000), noisy, 1e9), timing_decision::unstable);
}

TEST(LaunchBoundRules, TakeTheFastestOfFewerRunsWhereCallsAreVeryLong) {
  EXPECT_EQ(launch_bound_timing_rules().min_runs_per_batch, 3U);
  EXPECT_EQ(launch_bound_timing_rules(19e6).min_runs_per_batch, 3U);
  const timing_rules very_long = launch_bound_timing_rules(20e6);
  EXPECT_EQ(very_long.min_runs_per_batch, 2U);
  EXPECT_EQ(very_long.max_runs_per_batch, 2U);
}

TEST(LaunchBoundRules, DifferFromTheGpusInHowFarMeasurementsMaySpread) {
  const timing_rules gpu = gpu_timing_rules();
  const timing_rules launch_bound = launch_bound_timing_rules();
  const timing_rules processors = cpu_timing_rules();
  EXPECT_EQ(launch_bound.target_width, gpu.target_width);
  EXPECT_EQ(launch_bound.min_rounds, gpu.min_rounds);
  EXPECT_EQ(launch_bound.unstable_width, processors.unstable_width);
  EXPECT_EQ(launch_bound.unstable_variance, processors.unstable_variance);
  EXPECT_EQ(launch_bound.reverify_agreement, processors.reverify_agreement);
}

}  // namespace
}  // namespace hone
