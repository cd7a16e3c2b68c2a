#include "evaluation/judge/host_timing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "evaluation/judge/timed_checks.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_session.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::fake_session;
using testing_support::right_program;
using testing_support::scale_task;

// Times a case of the scale task on fake sessions, which report made-up times.
class Timing : public testing::Test {
 protected:
  case_timing time(fake_session& candidate, fake_session& reference,
                   const timing_limits& limits = {}, std::size_t sets = 8,
                   const timing_rules& rules = {}, double budget_ns = 60e9) {
    reference_oracle oracle(task_, std::make_unique<fake_session>(right_program()));
    const auto usable =
        usable_distributions(task_, random_, [](distribution, std::uint64_t) { return true; });
    timed_inputs inputs(input_recipe(oracle, task_.cases[0]), sets, usable, random_);
    time_budget budget(budget_ns);
    return time_case({candidate, reference, oracle}, inputs, rules, limits, budget, random_);
  }
  case_timing time(const fake_session::behavior& b, const timing_limits& limits = {},
                   double reference_deviation = 0) {
    fake_session candidate(b);
    fake_session::behavior r = right_program();
    if (reference_deviation > 0) r.call_ns = noisy(50e3, reference_deviation);
    fake_session reference(r);
    candidate.remember = reference.remember = false;
    return time(candidate, reference, limits);
  }
  // Returns log-normal noise of this standard deviation around `ns`.
  std::function<double()> noisy(double ns, double deviation) {
    return [this, ns, deviation] {
      float z = 0;
      noise_.fill_normal({&z, 1});
      return ns * std::exp(deviation * static_cast<double>(z));
    };
  }

  task task_ = scale_task();
  random_stream random_{3};
  random_stream noise_{4};
};

TEST_F(Timing, TheRatioIsReferenceOverCandidate) {
  fake_session::behavior b = right_program();
  b.call_ns = noisy(25e3, 0.05);
  const case_timing timing = time(b, {}, 0.05);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::OK);
  EXPECT_NEAR(timing.ratio.speedup, 2, 0.05);
  EXPECT_NEAR(timing.reference_us, 49, 1.5);  // the fastest of five runs of about 24 calls
  EXPECT_GE(timing.rounds, 7U);
}

TEST_F(Timing, CatchesAProgramThatIsRightForDeclaredContentsAlone) {
  fake_session::behavior b = right_program();
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    value_set y = testing_support::scaled(inputs, parameters);
    std::vector<double> numbers = to_doubles(y[0]);
    const double scale = std::abs(to_doubles(inputs[0])[0]);
    // Declared inputs are normal. The other distributions have only tiny values, many large values,
    // or a few large ones.
    for (double& number : numbers)
      number = number > 20 || number < -20 || scale < 0.01 ? 0 : number;
    return value_set{from_doubles(numbers, y[0].layout)};
  }};
  int found = 0;
  for (int i = 0; i < 40; ++i) {
    const case_timing timing = time(b);
    if (outcome_of(timing.failure) != Outcome::WRONG_RESULT) continue;
    EXPECT_THAT(message_of(timing.failure), HasSubstr("in a timed call"));
    ++found;
  }
  // Of about nine rounds, one in four has other contents: expected 1 - (3/4)^7 = 0.87 of 40.
  EXPECT_GE(found, 28);
}

TEST_F(Timing, ThrowsIfTheReferenceFails) {
  fake_session candidate(right_program());
  fake_session::behavior broken = right_program();
  broken.fails = [](std::size_t run) {
    return run == 5 ? program_result<void>(failed(Outcome::CRASH, "gone")) : program_result<void>();
  };
  fake_session reference(broken);
  EXPECT_THROW(time(candidate, reference), reference_error);
}

TEST_F(Timing, TheSameProgramTwiceScoresOne) {
  fake_session::behavior b = right_program();
  for (int i = 0; i < 50; ++i) {
    b.call_ns = noisy(50e3, 0.1);
    const case_timing timing = time(b, {}, 0.1);
    ASSERT_EQ(outcome_of(timing.failure), Outcome::OK) << message_of(timing.failure);
    ASSERT_NEAR(timing.ratio.speedup, 1, 0.05);
  }
}

// Other work on the machine makes runs slower, never faster.
TEST_F(Timing, IgnoresDisturbedRuns) {
  fake_session::behavior b = right_program();
  b.call_ns = [this] {
    float z = 0;
    noise_.fill_uniform({&z, 1});
    // One call in 200 takes two milliseconds, so that every ninth run is disturbed.
    return z < 0.005F ? 2e6 : 25e3;
  };
  const case_timing timing = time(b);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::OK);
  EXPECT_NEAR(timing.ratio.speedup, 2, 0.02);
}

TEST_F(Timing, EndsAfterThreeRoundsIfTheCandidateIsMuchSlower) {
  fake_session::behavior b = right_program();
  b.call_ns = [] { return 600e3; };
  const case_timing timing = time(b);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::OK);
  EXPECT_EQ(timing.rounds, 3U);
  EXPECT_NEAR(timing.ratio.speedup, 1.0 / 12, 0.01);
}

TEST_F(Timing, EndsWhenTheTimeBudgetIsSpent) {
  fake_session candidate(right_program());
  fake_session reference(right_program());
  EXPECT_EQ(outcome_of(time(candidate, reference, {}, 8, {}, -1e18).failure), Outcome::TIMEOUT);
}

TEST_F(Timing, NoiseThatNeverSettlesIsUnstable) {
  fake_session::behavior b = right_program();
  // Phases of some 4 ms, shorter than a batch, each at a different speed between 20 and 200 us a
  // call. By the usual widths, some of such measurements would settle.
  b.call_ns = [this, ns = 50e3]() mutable {
    if (noise_.uniform() < ns / 4e6) ns = 20e3 * std::pow(10.0, noise_.uniform());
    return ns;
  };
  timing_rules rules;
  rules.target_width = 0.005;
  rules.unstable_width = 0.01;
  fake_session candidate(b);
  fake_session reference(right_program());
  EXPECT_EQ(outcome_of(time(candidate, reference, {}, 8, rules).failure), Outcome::UNSTABLE);
}

// No part of the contents is repeated either, because results for one call could otherwise help
// with the next. evaluation.md requires less.
TEST_F(Timing, NeverRepeatsContents) {
  fake_session candidate(right_program());
  fake_session reference(right_program());
  time(candidate, reference);
  std::set<std::vector<std::byte>> contents;
  std::map<std::size_t, std::vector<double>> before;
  for (const auto& call : candidate.calls) {
    EXPECT_TRUE(contents.insert(call.inputs[0].bytes).second)
        << "run " << call.run << ", set " << call.set;
    if (call.parameters[0].bytes == candidate.calls.front().parameters[0].bytes)
      continue;  // contents of the warm-up differ in a few elements only
    const std::vector<double> now = to_doubles(call.inputs[0]);
    const auto zeros = std::count(now.begin(), now.end(), 0.0);
    if (zeros > 0) continue;  // sparse contents
    std::vector<double>& then = before[call.set];
    std::size_t same = 0;
    for (std::size_t i = 0; i < then.size(); ++i) same += then[i] == now[i] ? 1 : 0;
    EXPECT_LE(same, 64U) << "of 640, in run " << call.run << ", set " << call.set;
    then = now;
  }
  EXPECT_GT(contents.size(), 100U);
}

TEST_F(Timing, CatchesACacheKeyedByASampleDuringTheWarmUp) {
  fake_session::behavior b = right_program();
  // Returns the last result again if the first four elements of the input are the same.
  b.programs = {[kept = std::pair<std::vector<double>, value_set>()](
                    const value_set& inputs, const value_set& parameters) mutable {
    std::vector<double> sample = to_doubles(inputs[0]);
    sample.resize(4);
    if (kept.first != sample) kept = {sample, testing_support::scaled(inputs, parameters)};
    return kept.second;
  }};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(outcome_of(time(b).failure), Outcome::WRONG_RESULT);
}

// prepare() is not timed, and could read inputs behind a parameter's buffer.
TEST_F(Timing, RunsPrepareBeforeTheInputsAreWritten) {
  fake_session candidate(right_program());
  fake_session reference(right_program());
  const case_timing timing = time(candidate, reference);
  ASSERT_GT(candidate.prepared.size(), timing.rounds) << "also in rounds that do not count";
  for (const auto& prepared : candidate.prepared) {
    for (const auto& call : candidate.calls) {
      const bool is_later = call.run >= prepared.run && call.set == 0;
      EXPECT_FALSE(is_later && call.inputs[0].bytes == prepared.inputs[0].bytes)
          << "run " << call.run;
    }
  }
}

TEST_F(Timing, ParametersChangeFromRoundToRound) {
  fake_session candidate(right_program());
  fake_session reference(right_program());
  const case_timing timing = time(candidate, reference);
  std::set<std::vector<std::byte>> parameters;
  for (const auto& call : candidate.calls) parameters.insert(call.parameters[0].bytes);
  EXPECT_GE(parameters.size(), timing.rounds + 1U);  // and once for the warm-up
  EXPECT_EQ(parameters.size(), candidate.prepared.size());
}

TEST_F(Timing, BothSidesUseAllInputSets) {
  fake_session candidate(right_program());
  fake_session reference(right_program());
  time(candidate, reference);
  for (const auto* side : {&candidate, &reference}) {
    std::set<std::size_t> sets;
    for (const auto& call : side->calls) sets.insert(call.set);
    EXPECT_EQ(sets.size(), 8U);
  }
}

TEST_F(Timing, CatchesAProgramThatIsWrongInSomeTimedCalls) {
  fake_session::behavior b = right_program();
  // One in four calls is wrong. Half of seven or more rounds check one call each, and so do rounds
  // with other contents.
  int found = 0;
  for (int i = 0; i < 40; ++i) {
    b.programs = {[call = 0](const value_set& inputs, const value_set& parameters) mutable {
      return testing_support::scaled(inputs, parameters, ++call % 4 == 0 ? 3 : 2);
    }};
    found += outcome_of(time(b).failure) == Outcome::WRONG_RESULT ? 1 : 0;
  }
  EXPECT_GT(found, 18);  // expected 1 - (7/8)^7 = 0.61 of 40, less two standard deviations
}

// Facts about a call that a program can observe before it returns, apart from the contents.
using observation = std::map<std::string, std::size_t>;

struct observed_call {
  observation seen;
  bool is_checked = false;
};

// Returns true if these look like 640 normal numbers.
bool are_normal(const tensor_value& value) {
  const std::vector<double> numbers = to_doubles(value);
  const auto within = [&](double bound) {
    const auto count = std::count_if(numbers.begin(), numbers.end(),
                                     [bound](double x) { return std::abs(x) < bound; });
    return static_cast<double>(count) / static_cast<double>(numbers.size());
  };
  return within(6) == 1 && std::abs(within(0.6745) - 0.5) < 0.1;
}

// Returns the calls of a timing's rounds with declared contents.
std::vector<observed_call> observe(const fake_session& candidate) {
  const std::set<std::pair<std::size_t, std::size_t>> checked(candidate.checked.begin(),
                                                              candidate.checked.end());
  std::map<std::size_t, std::size_t> calls_of;  // by run
  for (const auto& call : candidate.calls) ++calls_of[call.run];
  std::vector<observed_call> observed;
  const fake_session::seen_call* last = nullptr;
  std::size_t in_run = 0;
  std::size_t since_parameters = 0;
  std::size_t parameters = 0;
  std::size_t since_outlier = 0;
  for (std::size_t i = 0; i < candidate.calls.size(); ++i) {
    const auto& call = candidate.calls[i];
    in_run = last != nullptr && last->run == call.run ? in_run + 1 : 0;
    const bool is_new = last == nullptr || last->parameters[0].bytes != call.parameters[0].bytes;
    since_parameters = is_new ? 0 : since_parameters + 1;
    parameters += is_new ? 1 : 0;
    last = &call;
    const bool is_declared = are_normal(call.inputs[0]) && are_normal(call.parameters[0]);
    since_outlier = is_declared ? since_outlier + 1 : 0;
    if (!is_declared || parameters < 2) continue;  // the first parameters are the warm-up's
    observed.push_back({{{"place in the run", in_run},
                         {"calls of the run", calls_of[call.run]},
                         {"set", call.set},
                         {"calls since new parameters", since_parameters},
                         {"calls since other contents", since_outlier},
                         {"run", call.run},
                         {"parity of the run", call.run % 2},
                         {"parity of the call", i % 2},
                         {"new parameters so far", parameters}},
                        checked.count({call.run, in_run}) > 0});
  }
  return observed;
}

// Returns the chance that a checked call looks more like one, by what was learnt from other
// timings, than a call that is not checked: 0.5 if the observations say nothing.
double chance_of_telling(const std::vector<observed_call>& learnt_from,
                         const std::vector<observed_call>& told,
                         const std::vector<std::string>& by) {
  // Smaller values are distinguished exactly, larger ones by their logarithm.
  constexpr std::size_t values = 8;
  const auto key_of = [&](const observation& seen) {
    std::vector<std::size_t> key;
    for (const std::string& name : by) {
      const std::size_t x = seen.at(name);
      key.push_back(x < values ? x : values + std::bit_width(x));
    }
    return key;
  };
  std::map<std::vector<std::size_t>, std::pair<double, double>> counts;  // checked, all
  for (const observed_call& call : learnt_from) {
    auto& [checked, all] = counts[key_of(call.seen)];
    checked += call.is_checked ? 1 : 0;
    ++all;
  }
  std::vector<std::pair<double, bool>> ranked;
  for (const observed_call& call : told) {
    const auto found = counts.find(key_of(call.seen));
    const auto [checked, all] = found != counts.end() ? found->second : std::pair(0.0, 0.0);
    ranked.emplace_back((checked + 1) / (all + 20), call.is_checked);
  }
  std::sort(ranked.begin(), ranked.end());
  double below = 0;
  double pairs = 0;
  double checked_before = 0;
  for (std::size_t i = 0; i < ranked.size();) {
    std::size_t end = i;
    double checked = 0;
    while (end < ranked.size() && ranked[end].first == ranked[i].first)
      checked += ranked[end++].second ? 1 : 0;
    const double others = static_cast<double>(end - i) - checked;
    below += others * checked_before + others * checked / 2;
    checked_before += checked;
    pairs += others;
    i = end;
  }
  return 1 - below / (pairs * checked_before);
}

TEST_F(Timing, NothingThatAProgramObservesTellsCheckedCallsFromOthers) {
  std::vector<observed_call> learnt_from;
  std::vector<observed_call> told;
  fake_session::behavior b = right_program();
  std::size_t checked = 0;
  for (int i = 0; i < 100; ++i) {
    fake_session candidate(b);
    fake_session reference(b);
    reference.remember = false;
    time(candidate, reference, {}, 4);
    for (const observed_call& call : observe(candidate)) {
      (i % 2 == 0 ? learnt_from : told).push_back(call);
      checked += call.is_checked ? 1 : 0;
    }
  }
  ASSERT_GT(checked, 200U);
  std::vector<std::string> names;
  for (const auto& [name, value] : told.front().seen) names.push_back(name);
  // Five standard deviations of the chance, for so many checked calls in each half.
  const double most = 0.5 + 5 * std::sqrt(2.0 / (12 * static_cast<double>(checked)));
  for (const std::string& a : names) {
    for (const std::string& b_name : names)
      EXPECT_LT(chance_of_telling(learnt_from, told, {a, b_name}), most) << a << ", " << b_name;
  }
}

TEST_F(Timing, MuchWorkBetweenRunsIsLateWork) {
  fake_session::behavior b = right_program();
  b.call_ns = [] { return 5e3; };
  b.outside_ns = [] { return 400e3; };
  const case_timing timing = time(b);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::CHEATING);
  EXPECT_EQ(kind_of(timing.failure), "late_work");
  b.outside_ns = [] { return 100e3; };  // receiving a command, on a busy machine
  EXPECT_EQ(outcome_of(time(b).failure), Outcome::OK);
}

// A machine that takes the processor away for some milliseconds may charge them to the process.
TEST_F(Timing, AFewLongPausesBetweenRunsAreNoLateWork) {
  fake_session::behavior b = right_program();
  b.call_ns = [] { return 25e3; };
  b.outside_ns = [runs = 0]() mutable { return ++runs % 12 == 0 ? 20e6 : 30e3; };
  const case_timing timing = time(b);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::OK) << message_of(timing.failure);
  EXPECT_NEAR(timing.ratio.speedup, 2, 0.05);
  b.outside_ns = [runs = 0]() mutable { return ++runs % 3 == 0 ? 20e6 : 30e3; };
  EXPECT_EQ(kind_of(time(b).failure), "late_work") << "in one run of three it is no accident";
}

TEST_F(Timing, WhatTheMachineDoesToTheReferenceTooIsNoLateWork) {
  const auto time_both = [this](double outside_ns) {
    fake_session::behavior b = right_program();
    b.outside_ns = [outside_ns] { return outside_ns; };
    fake_session candidate(b);
    fake_session reference(b);
    return time(candidate, reference);
  };
  EXPECT_EQ(outcome_of(time_both(400e3).failure), Outcome::OK);
  EXPECT_EQ(kind_of(time_both(1e6).failure), "late_work") << "no machine does that";
}

TEST_F(Timing, ATimeBelowTheFloorIsImpossible) {
  fake_session::behavior b = right_program();
  b.call_ns = [] { return 20; };
  const timing_limits limits{.floor_us_per_byte = 0.05 / 2560};  // 640 floats
  const case_timing timing = time(b, limits);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::CHEATING);
  EXPECT_EQ(kind_of(timing.failure), "impossible_time");
  b.output_bytes = 4;  // one element, expanded
  EXPECT_EQ(outcome_of(time(b, limits).failure), Outcome::OK);
}

TEST_F(Timing, ACallThatIsChargedNoTimeAtTimesIsNotImpossible) {
  fake_session::behavior b = right_program();
  b.call_ns = [calls = 0]() mutable { return ++calls % 320 < 20 ? 0.0 : 50e3; };
  const timing_limits limits{.floor_us_per_byte = 0.05 / 2560};
  EXPECT_EQ(kind_of(time(b, limits).failure), "");
}

TEST_F(Timing, EndsWithTheFailureOfATimedRun) {
  fake_session::behavior b = right_program();
  b.fails = [](std::size_t run) {
    return run == 20 ? program_result<void>(failed(Outcome::TIMEOUT, "too long"))
                     : program_result<void>();
  };
  EXPECT_EQ(outcome_of(time(b).failure), Outcome::TIMEOUT);
}

TEST(AffordableSets, FillTheBudgetWithinLimits) {
  EXPECT_EQ(affordable_sets(1U << 20U, 8U << 20U), 8U);
  EXPECT_EQ(affordable_sets(64U << 20U, 8U << 20U), 2U);
  EXPECT_EQ(affordable_sets(16, 8U << 20U), 128U);
  EXPECT_EQ(affordable_sets(0, 8U << 20U), 128U);
}

}  // namespace
}  // namespace hone
