#include "evaluation/judge/verification.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "evaluation/judge/host_trial.hpp"
#include "evaluation/judge/timed_checks.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_session.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::fake_session;
using testing_support::right_program;
using testing_support::scale_task;

// Returns the distributions that the task lists and that change something.
std::vector<distribution> all_of(const task& t) {
  random_stream random(1);
  return usable_distributions(t, random, [](distribution, std::uint64_t) { return true; });
}

verification_result verify(fake_session& candidate, const task& t, std::uint64_t seed = 5,
                           const verification_limits& limits = {},
                           fake_session::behavior reference = right_program(),
                           const std::vector<distribution>& more = {}, double budget_ns = 60e9) {
  reference_oracle oracle(t, std::make_unique<fake_session>(std::move(reference)));
  host_trial trial(candidate, oracle, [&](const task_case&) {
    std::vector<distribution> usable = all_of(t);
    usable.insert(usable.end(), more.begin(), more.end());
    return usable;
  });
  time_budget budget(budget_ns);
  return verify_program(trial, "cpu", seed, limits, budget);
}

verification_result verify(fake_session::behavior b, const task& t = scale_task()) {
  fake_session candidate(std::move(b));
  return verify(candidate, t);
}

TEST(Verification, ARightProgramPassesEveryRoundOfEveryCase) {
  fake_session candidate(right_program());
  const auto result = verify(candidate, scale_task());
  EXPECT_EQ(outcome_of(result.failure), Outcome::OK);
  // Each of two cases has two rounds as declared, one for each of six other distributions and a
  // second one for `sparse` and for `weights`.
  EXPECT_EQ(result.rounds, 20U);
  // Per case, the first two rounds have three calls each, and the round of outliers has two more
  // than the others, with a single outlier of either sign.
  EXPECT_EQ(candidate.calls.size(), 2U * (2 * 3 + 7 * 1 + 3));
}

TEST(Verification, ATaskWithFewDistributionsStillGetsFiveRounds) {
  fake_session candidate(right_program());
  EXPECT_EQ(verify(candidate, scale_task("distributions = [\"declared\"]\n")).rounds, 10U);
}

TEST(Verification, FindsNothingRightWhereNoCaseIsForTheDevice) {
  task t = scale_task();
  for (task_case& at : t.cases) at.on = {"cuda"};
  fake_session candidate(right_program());
  const auto result = verify(candidate, t);
  EXPECT_EQ(result.rounds, 0U);
  EXPECT_EQ(outcome_of(result.failure), Outcome::INFRASTRUCTURE);
  EXPECT_THAT(message_of(result.failure), HasSubstr("no case for this kind of device"));
}

// Returns the calls of each round, which have equal parameters.
std::vector<std::vector<fake_session::seen_call>> rounds_of(const fake_session& candidate) {
  std::vector<std::vector<fake_session::seen_call>> rounds;
  for (const auto& call : candidate.calls) {
    if (rounds.empty() || rounds.back()[0].parameters[0].bytes != call.parameters[0].bytes)
      rounds.emplace_back();
    rounds.back().push_back(call);
  }
  return rounds;
}

// Two rounds of each case call three times: with the same contents at two addresses, then with a
// few elements changed at the address of the call before. The others call once.
TEST(Verification, CallsAtTwoAddressesAndOnContentsThatHardlyDiffer) {
  const std::string declared = "distributions = [\"declared\"]\n";
  std::set<std::size_t> later_sets;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    fake_session candidate(right_program());
    verify(candidate, scale_task(declared), seed);
    const auto rounds = rounds_of(candidate);
    ASSERT_EQ(rounds.size(), 10U) << "of two cases";
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto& calls = rounds[i];
      if (i % 5 >= 2) {
        EXPECT_EQ(calls.size(), 1U) << "round " << i;
        later_sets.insert(calls[0].set);
        continue;
      }
      ASSERT_EQ(calls.size(), 3U) << "round " << i;
      EXPECT_EQ(calls[0].inputs[0].bytes, calls[1].inputs[0].bytes);
      EXPECT_NE(calls[0].set, calls[1].set);
      EXPECT_EQ(calls[1].set, calls[2].set);
      const std::vector<double> before = to_doubles(calls[1].inputs[0]);
      const std::vector<double> after = to_doubles(calls[2].inputs[0]);
      int changed = 0;
      for (std::size_t k = 0; k < before.size(); ++k) changed += before[k] != after[k] ? 1 : 0;
      EXPECT_GE(changed, 1);
      EXPECT_LE(changed, 3);
    }
  }
  EXPECT_EQ(later_sets.size(), 2U) << "a program could know which address is tried";
}

// Outliers, single ones too, and `sparse` change one input at a time. Each input has its turn, in
// whatever order they are declared.
TEST(Verification, ChangesEachInputAlone) {
  const task t = parse_task(
      "name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor, y: Tensor, z: "
      "Tensor) "
      "-> Tensor:\n    return x\n'''\ndistributions = [\"declared\", \"outliers\", \"sparse\"]\n"
      "[[input]]\nname = \"x\"\nshape = [64]\n[[input]]\nname = \"y\"\nshape = [64]\n[[input]]\n"
      "name = \"z\"\nshape = [64]\n[[case]]\ntimed = true\n",
      "t.toml");
  fake_session::behavior first;
  first.programs = {[](const value_set& inputs, const value_set&) { return value_set{inputs[0]}; }};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    fake_session candidate(first);
    const auto result = verify(candidate, t, seed, {}, first);
    EXPECT_EQ(outcome_of(result.failure), Outcome::OK) << message_of(result.failure);
    EXPECT_EQ(result.rounds, 2U + 3U + 3U);
    std::set<std::size_t> of_many;
    std::set<std::size_t> of_one;
    std::set<std::size_t> of_zeros;
    for (const auto& call : candidate.calls) {
      for (std::size_t i = 0; i < 3; ++i) {
        const std::vector<double> x = to_doubles(call.inputs[i]);
        const auto count = [&](auto is) { return std::count_if(x.begin(), x.end(), is); };
        const auto large = count([](double v) { return std::abs(v) > 400; });
        const auto singles = count([](double v) { return std::abs(v) > 19000; });
        if (large > 1) of_many.insert(i);
        if (singles == 1) of_one.insert(i);
        if (count([](double v) { return v == 0; }) > 8) of_zeros.insert(i);
      }
    }
    EXPECT_EQ(of_many.size(), 3U);
    EXPECT_EQ(of_one.size(), 3U);
    EXPECT_EQ(of_zeros.size(), 3U);
  }
}

TEST(Verification, CatchesAProgramThatLooksForOutliersInASample) {
  // Looks for undeclared values in every other element. If it finds none, it takes large values of
  // the other elements for 0.
  fake_session::behavior b = right_program();
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    value_set looked_at = inputs;
    std::vector<double> x = to_doubles(inputs[0]);
    bool is_odd = false;
    for (std::size_t i = 0; i < x.size(); i += 2)
      is_odd = is_odd || std::abs(x[i]) > 20 || std::abs(x[i]) < 1e-4;
    for (std::size_t i = 1; !is_odd && i < x.size(); i += 2) x[i] = std::abs(x[i]) > 400 ? 0 : x[i];
    looked_at[0] = from_doubles(x, inputs[0].layout);
    return testing_support::scaled(looked_at, parameters);
  }};
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    fake_session candidate(b);
    caught +=
        outcome_of(verify(candidate, scale_task(), seed).failure) == Outcome::WRONG_RESULT ? 1 : 0;
  }
  // There are two cases. In each, the outlier escapes the sample with probability 1/2.
  EXPECT_GE(caught, 8);
}

TEST(Verification, CatchesACacheKeyedByASample) {
  fake_session::behavior b = right_program();
  b.programs = {[kept = std::pair<std::vector<double>, value_set>()](
                    const value_set& inputs, const value_set& parameters) mutable {
    const std::vector<double> x = to_doubles(inputs[0]);
    const std::vector<double> sample = {x.front(), x[x.size() / 2], x.back()};
    if (kept.first != sample) kept = {sample, testing_support::scaled(inputs, parameters)};
    return kept.second;
  }};
  EXPECT_EQ(outcome_of(verify(b).failure), Outcome::WRONG_RESULT);
}

TEST(Verification, EqualSeedsDrawEqualInputs) {
  fake_session first(right_program());
  fake_session second(right_program());
  fake_session third(right_program());
  verify(first, scale_task(), 5);
  verify(second, scale_task(), 5);
  verify(third, scale_task(), 6);
  EXPECT_EQ(first.calls[7].inputs[0].bytes, second.calls[7].inputs[0].bytes);
  EXPECT_NE(first.calls[7].inputs[0].bytes, third.calls[7].inputs[0].bytes);
}

TEST(Verification, AWrongResultNamesElementCaseAndDistribution) {
  fake_session::behavior b = right_program();
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    value_set y = testing_support::scaled(inputs, parameters);
    std::vector<double> numbers = to_doubles(y[0]);
    // Wrong only where numbers are large: shifted inputs are 10 x + 25.
    for (double& number : numbers) number = number > 20 ? 20 : number;
    return value_set{from_doubles(numbers, y[0].layout)};
  }};
  const auto failure = verify(b).failure;
  EXPECT_EQ(outcome_of(failure), Outcome::WRONG_RESULT);
  EXPECT_THAT(message_of(failure), HasSubstr("element ["));
  EXPECT_THAT(message_of(failure), HasSubstr("case N=640, shifted contents"));
}

TEST(Verification, ChecksOddSizesAsWell) {
  fake_session::behavior b = right_program();
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    return testing_support::scaled(inputs, parameters, inputs[0].layout.elements() == 7 ? 3 : 2);
  }};
  EXPECT_THAT(message_of(verify(b).failure), HasSubstr("case N=7"));
}

TEST(Verification, CatchesARaceInTheSecondCall) {
  fake_session::behavior b = right_program();
  b.programs = {[call = 0](const value_set& inputs, const value_set& parameters) mutable {
    return testing_support::scaled(inputs, parameters, ++call == 2 ? 2.1 : 2);
  }};
  EXPECT_EQ(outcome_of(verify(b).failure), Outcome::WRONG_RESULT);
}

TEST(Verification, ChangedArgumentsAreInputMutation) {
  for (const bool input : {true, false}) {
    fake_session::behavior b = right_program();
    b.tamper = [input](value_set& inputs, value_set& parameters) {
      (input ? inputs : parameters)[0].bytes.back() ^= std::byte{1};
    };
    const auto failure = verify(b).failure;
    EXPECT_EQ(outcome_of(failure), Outcome::CHEATING);
    EXPECT_EQ(kind_of(failure), "input_mutation");
    EXPECT_THAT(message_of(failure),
                HasSubstr(input ? "an input was changed" : "a parameter was changed"));
  }
}

TEST(Verification, DamageAroundBuffersIsAMemoryFault) {
  fake_session::behavior b = right_program();
  b.damage = "wrote outside of an input's buffer";
  EXPECT_EQ(kind_of(verify(b).failure), "memory_fault");
}

TEST(Verification, AllowsAnAliasOnlyIfTheReferenceHasItToo) {
  using with = output_alias::with;
  fake_session::behavior b = right_program();
  b.aliases = {{0, with::input, 0}};
  const auto failure = verify(b).failure;
  EXPECT_EQ(kind_of(failure), "output_alias");
  EXPECT_THAT(message_of(failure), HasSubstr("lies in the memory of the input x"));
  const task t = scale_task();
  fake_session candidate(b);
  EXPECT_EQ(outcome_of(verify(candidate, t, 5, {}, b).failure), Outcome::OK);
}

TEST(Verification, ReportsTheFailureOfARun) {
  fake_session::behavior b = right_program();
  b.fails = [](std::size_t run) {
    return run == 3 ? program_result<void>(failed(Outcome::CRASH, "signal 11"))
                    : program_result<void>();
  };
  const auto failure = verify(b).failure;
  EXPECT_EQ(outcome_of(failure), Outcome::CRASH);
  EXPECT_THAT(message_of(failure), HasSubstr("signal 11 (case N=640"));
}

TEST(Verification, FindsAProgramWithTheRangeOfHalfPrecisionByLargeContents) {
  fake_session::behavior half = right_program();
  const auto right = half.programs.at(0);
  half.programs.at(0) = [right](const value_set& inputs, const value_set& parameters) {
    value_set outputs = right(inputs, parameters);
    auto values = to_doubles(outputs.at(0));
    for (double& x : values) x = std::abs(x) > 65504 ? std::copysign(HUGE_VAL, x) : x;
    outputs.at(0) = from_doubles(values, outputs.at(0).layout);
    return outputs;
  };
  const task declared = scale_task("distributions = [\"declared\"]\n");
  const auto judged = [&](const fake_session::behavior& b, const std::vector<distribution>& more) {
    fake_session candidate(b);
    return verify(candidate, declared, 5, {}, right_program(), more).failure;
  };
  EXPECT_EQ(outcome_of(judged(half, {})), Outcome::OK);
  const auto caught = judged(half, {distribution::large});
  EXPECT_EQ(outcome_of(caught), Outcome::WRONG_RESULT);
  EXPECT_THAT(message_of(caught), HasSubstr("large contents"));
  EXPECT_EQ(outcome_of(judged(right_program(), {distribution::large})), Outcome::OK);
}

TEST(Verification, EndsWhenAllCallsTogetherTakeTooLong) {
  fake_session candidate(right_program());
  const task t = scale_task();
  EXPECT_EQ(outcome_of(verify(candidate, t, 5, {}, right_program(), {}, -1).failure),
            Outcome::TIMEOUT);
}

TEST(Verification, GivesTheFirstCallTimeToLoad) {
  fake_session candidate(right_program());
  const verification_limits limits{.call = std::chrono::seconds(2),
                                   .loading = std::chrono::seconds(8)};
  EXPECT_EQ(outcome_of(verify(candidate, scale_task(), 5, limits).failure), Outcome::OK);
  EXPECT_GT(candidate.allowed.at(0), std::chrono::seconds(9));
  EXPECT_LE(*std::max_element(candidate.allowed.begin() + 1, candidate.allowed.end()),
            std::chrono::seconds(2));
}

TEST(Verification, GivesTheFirstCallOfEachCaseTimeToTune) {
  fake_session candidate(right_program());
  const task t = scale_task();
  const verification_limits limits{.call = std::chrono::seconds(2),
                                   .tuning = std::chrono::seconds(20)};
  EXPECT_EQ(outcome_of(verify(candidate, t, 5, limits).failure), Outcome::OK);
  EXPECT_GT(candidate.allowed.at(0), std::chrono::seconds(21));
  const auto tunes = std::count_if(candidate.allowed.begin(), candidate.allowed.end(),
                                   [](auto limit) { return limit > std::chrono::seconds(2); });
  EXPECT_EQ(tunes, static_cast<std::ptrdiff_t>(t.cases.size()));
}

TEST(Verification, RefusesOutputsOfAnotherTypeOrNumber) {
  fake_session::behavior b = right_program();
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    value_set y = testing_support::scaled(inputs, parameters);
    return value_set{convert_floating(y[0], dtype::float64)};
  }};
  EXPECT_THAT(message_of(verify(b).failure), HasSubstr("is float64[640], expected float32[640]"));
  b.programs = {[](const value_set& inputs, const value_set& parameters) {
    value_set y = testing_support::scaled(inputs, parameters);
    y.push_back(y[0]);
    return y;
  }};
  EXPECT_THAT(message_of(verify(b).failure), HasSubstr("2 outputs, expected 1"));
}

TEST(Verification, ThrowsIfTheReferenceFails) {
  fake_session candidate(right_program());
  fake_session::behavior broken = right_program();
  broken.fails = [](std::size_t) { return failed(Outcome::CRASH, "no"); };
  EXPECT_THROW(verify(candidate, scale_task(), 5, {}, broken), reference_error);
}

}  // namespace
}  // namespace hone
