#include "evaluation/judge/timed_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/sampled_side.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_session.hpp"
#include "tests/support/synthetic_sides.hpp"

namespace hone {
namespace {

const program_result<void> no_failure;
const program_result<void> is_off = failed(Outcome::WRONG_RESULT, "off");
const std::vector<distribution> all = {distribution::declared, distribution::shifted,
                                       distribution::small, distribution::outliers};

timed_checks::check_function always(const program_result<void>& result) {
  return [result](const auto&) {
    return timed_checks::checked_call{distribution::shifted, result};
  };
}

TEST(TimedChecks, DrawOtherDistributionsInOneRoundOfFour) {
  random_stream random(5);
  timed_checks checks(all, random, always(no_failure));
  std::map<distribution, int> drawn;
  constexpr int rounds = 4000;
  for (int i = 0; i < rounds; ++i) {
    const drawn_round round = checks.draw(7, cpu_timing_rules());
    EXPECT_EQ(round.seed, 7U);
    EXPECT_EQ(round.counts(), round.of_calls == std::vector{distribution::declared});
    for (const distribution how : round.of_calls) ++drawn[how];
  }
  EXPECT_NEAR(drawn[distribution::declared], rounds * 3 / 4, 140);  // five standard deviations
  EXPECT_EQ(drawn.size(), 6U) << "outliers bring single outliers with them";
  const auto [least, most] = std::minmax(
      {drawn[distribution::shifted], drawn[distribution::small], drawn[distribution::outliers],
       drawn[distribution::one_high], drawn[distribution::one_low]});
  EXPECT_LE(most - least, 1) << "they take turns";
}

std::vector<distribution> all_and_weights() {
  std::vector<distribution> usable = all;
  usable.insert(usable.end(), {distribution::weights, distribution::mixed});
  return usable;
}

TEST(TimedChecks, DrawThreeDistributionsForARoundButWeightsAlone) {
  random_stream random(9);
  timed_checks checks(all_and_weights(), random, always(no_failure));
  timing_rules rules = cpu_timing_rules();
  rules.others_one_in = 1;
  std::map<std::size_t, int> sizes;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<distribution> drawn = checks.draw(1, rules).of_calls;
    ++sizes[drawn.size()];
    EXPECT_EQ(drawn.size() == 1, drawn.front() == distribution::weights);
  }
  EXPECT_EQ(sizes[1] + sizes[3], 1000);
  EXPECT_NEAR(sizes[1], 333, 75) << "six others are two rounds";
}

TEST(TimedChecks, DrawARoundWhateverTheRoundsBeforeWere) {
  // A program that knew when a declared round is due could be careless in it.
  random_stream random(6);
  timed_checks checks(all, random, always(no_failure));
  std::map<std::pair<bool, bool>, int> pairs;
  bool before = false;
  constexpr int rounds = 20000;
  for (int i = 0; i < rounds; ++i) {
    const bool now = !checks.draw(1, cpu_timing_rules()).counts();
    ++pairs[{before, now}];
    before = now;
  }
  const auto share = [&](bool then) {
    const double others = pairs[{then, true}];
    return others / (others + pairs[{then, false}]);
  };
  EXPECT_NEAR(share(true), 0.25, 0.03);
  EXPECT_NEAR(share(false), 0.25, 0.02);
}

TEST(TimedChecks, DrawDeclaredContentsAloneIfNothingElseIsUsable) {
  random_stream random(7);
  timed_checks checks({distribution::declared}, random, always(no_failure));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(checks.draw(1, gpu_timing_rules()).of_calls, std::vector{distribution::declared});
}

TEST(TimedChecks, ReportThatATimedCallWasWrongAndItsContents) {
  random_stream random(8);
  timed_checks checks({distribution::shifted}, random, always(is_off));
  try {
    checks.check();
    ADD_FAILURE() << "passed";
  } catch (const timing_failure& e) {
    EXPECT_EQ(e.why.outcome, Outcome::WRONG_RESULT);
    EXPECT_EQ(e.why.message, "off (in a timed call, shifted contents)");
  }
}

task scaling(const std::string& more = "") { return testing_support::scale_task(more); }

TEST(UsableDistributions, AreThoseWithWhichTheReferenceGivesNumbers) {
  random_stream random(1);
  const auto usable = usable_distributions(scaling(), random, [](distribution how, std::uint64_t) {
    if (how == distribution::small) throw reference_error(Outcome::CRASH, "index out of range");
    return how != distribution::shifted;
  });
  EXPECT_THAT(usable, testing::ElementsAre(distribution::declared, distribution::outliers,
                                           distribution::mixed, distribution::sparse,
                                           distribution::weights));
}

TEST(UsableDistributions, AreAllIfTheReferenceGivesNoNumbersAnyway) {
  random_stream random(1);
  const auto never = [](distribution, std::uint64_t) { return false; };
  const auto usable = usable_distributions(scaling(), random, never);
  EXPECT_EQ(usable.size(), listed_distributions.size());
}

TEST(UsableDistributions, ChangeSomething) {
  const task fixed = parse_task(
      "name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n    "
      "return x\n'''\n[[input]]\nname = \"x\"\nshape = [4]\nfixed = true\n[[case]]\ntimed = true\n",
      "t.toml");
  random_stream random(1);
  const auto always = [](distribution, std::uint64_t) { return true; };
  EXPECT_THAT(usable_distributions(fixed, random, always),
              testing::ElementsAre(distribution::declared));
}

// Whether outliers of one input or of the other are drawn depends on the seed. A distribution must
// give numbers for both.
TEST(UsableDistributions, GiveNumbersWhicheverInputTheyChange) {
  const task product = parse_task(
      "name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor, y: Tensor) -> "
      "Tensor:\n    return x * y\n'''\n[[input]]\nname = \"x\"\nshape = [4]\n[[input]]\nname = "
      "\"y\"\nshape = [4]\n[[case]]\ntimed = true\n",
      "t.toml");
  random_stream random(1);
  std::set<std::uint64_t> turns_of_outliers;
  const auto usable =
      usable_distributions(product, random, [&](distribution how, std::uint64_t seed) {
        if (how == distribution::outliers) turns_of_outliers.insert(seed % 2);
        return how != distribution::sparse || seed % 2 == 0;
      });
  EXPECT_EQ(turns_of_outliers.size(), 2U);
  EXPECT_THAT(usable, testing::Contains(distribution::outliers));
  EXPECT_THAT(usable, testing::Not(testing::Contains(distribution::sparse)));
}

TEST(UsableDistributions, DoNotHideThatTheMachineFails) {
  random_stream random(1);
  const auto fails = [](distribution how, std::uint64_t) -> bool {
    if (how == distribution::declared) return true;
    throw reference_error(Outcome::INFRASTRUCTURE, "no memory");
  };
  EXPECT_THROW(usable_distributions(scaling(), random, fails), reference_error);
}

// A program that is wrong in one run of five, at random, and faster there.
class careless_side final : public sampled_side {
 public:
  explicit careless_side(std::uint64_t seed)
      : sampled_side(sampled_side::role::candidate), coin_(seed) {}
  void set_parameters(const drawn_contents& /*contents*/) override {}
  std::vector<double> sample(std::size_t /*calls*/) override {
    is_wrong = ++runs_ > 80 && coin_.below(5) == 0;
    return {is_wrong ? 0.87 * 2e6 : 2e6};
  }
  std::size_t max_calls() const override { return 1; }
  bool is_wrong = false;  // in the last run

 private:
  random_stream coin_;
  int runs_ = 0;
};

TEST(TimedChecks, CatchAProgramThatIsWrongInOneRunOfABatch) {
  // Of the runs of a batch on a CPU, the fastest one counts.
  timing_rules rules = cpu_timing_rules();
  rules.clocked_budget_ns = 0.5e6;
  random_stream random(3);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    careless_side candidate(seed);
    testing_support::synthetic_side reference(sampled_side::role::reference, [] { return 2e6; });
    timed_checks checks({distribution::declared, distribution::shifted}, random, [&](const auto&) {
      return timed_checks::checked_call{distribution::declared,
                                        candidate.is_wrong ? is_off : no_failure};
    });
    const case_timing timing = time_pair(candidate, reference, rules, random, &checks);
    EXPECT_EQ(outcome_of(timing.failure), Outcome::WRONG_RESULT) << seed;
  }
}

// A program that is wrong for small numbers once it has been called often enough, and five times as
// fast.
class forgetful_side final : public sampled_side {
 public:
  forgetful_side() : sampled_side(sampled_side::role::candidate) {}
  void set_parameters(const drawn_contents& /*contents*/) override {}
  void begin_round(const drawn_round& round) override {
    round_ = round;
    calls_of_round_ = 0;
  }
  std::vector<double> sample(std::size_t calls) override {
    calls_ += calls;
    last_.clear();
    for (std::size_t i = 0; i < calls; ++i) last_.push_back(round_.of_call(calls_of_round_++));
    return std::vector<double>(calls, is_careless() ? 2e4 : 1e5);
  }
  std::size_t max_calls() const override { return 12; }
  bool is_careless() const { return calls_ > 60; }
  const std::vector<distribution>& last() const { return last_; }

 private:
  drawn_round round_;
  std::size_t calls_of_round_ = 0;
  std::size_t calls_ = 0;
  std::vector<distribution> last_;
};

TEST(TimedChecks, CatchAProgramThatIsWrongForOneDistributionAfterManyCalls) {
  random_stream random(4);
  constexpr int times = 100;
  int passed = 0;
  for (int i = 0; i < times; ++i) {
    forgetful_side candidate;
    testing_support::synthetic_side reference(sampled_side::role::reference, [] { return 1e5; });
    timed_checks checks(all, random, [&](std::optional<distribution> wanted) {
      const std::vector<distribution>& seen = candidate.last();
      const distribution how = seen[draw_call(seen.size(), wanted, random,
                                              [&](std::size_t call) { return seen[call]; })];
      const bool is_right = how != distribution::small || !candidate.is_careless();
      return timed_checks::checked_call{how, is_right ? no_failure : is_off};
    });
    const case_timing timing =
        time_pair(candidate, reference, testing_support::synthetic_rules(), random, &checks);
    if (outcome_of(timing.failure) == Outcome::OK) ++passed;
  }
  EXPECT_EQ(passed, 0);
}

}  // namespace
}  // namespace hone
