#include "evaluation/judge/timed_checks.hpp"

#include <gtest/gtest.h>

#include <map>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/sampled_side.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/synthetic_sides.hpp"

namespace hone {
namespace {

const program_result<void> no_failure;
const program_result<void> wrong = failed(Outcome::WRONG_RESULT, "off");
const std::vector<distribution> all = {distribution::declared, distribution::shifted,
                                       distribution::small, distribution::outliers};

// The number of checks by distribution; nullopt: of a call as it was timed.
using tally = std::map<std::optional<distribution>, int>;

timed_checks::check_function counting(tally& seen) {
  return [&seen](std::optional<distribution> how, worst_errors&) {
    ++seen[how];
    return no_failure;
  };
}

TEST(TimedChecks, CoverEveryOtherDistributionInTurn) {
  random_stream random(5);
  tally seen;
  timed_checks checks(all, random, counting(seen));
  for (int i = 0; i < 300; ++i) checks.check();
  EXPECT_EQ(seen[std::nullopt], 300);
  EXPECT_EQ(seen.count(distribution::declared), 0U);  // timed calls have declared contents
  const auto [least, most] = std::minmax(
      {seen[distribution::shifted], seen[distribution::small], seen[distribution::outliers],
       seen[distribution::one_high], seen[distribution::one_low]});
  EXPECT_LE(most - least, 1);
  EXPECT_GT(least, 20);
}

TEST(TimedChecks, CoverEveryDistributionAtTheEnd) {
  random_stream random(6);
  tally seen;
  timed_checks checks(all, random, counting(seen));
  checks.check_at_end(100);
  EXPECT_EQ(seen.size(), 6U) << "outliers bring single outliers with them";
  for (const auto& [how, times] : seen) EXPECT_EQ(times, 1);
}

TEST(TimedChecks, DrawAFewDistributionsAtTheEndOfVeryLongCalls) {
  random_stream random(6);
  tally seen;
  constexpr int ends = 100;
  for (int i = 0; i < ends; ++i) {
    timed_checks checks(all, random, counting(seen));
    checks.check_at_end(2);
  }
  EXPECT_EQ(seen[std::nullopt], ends);
  EXPECT_EQ(seen.size(), 6U);
  int others = 0;
  for (const auto& [how, times] : seen) {
    EXPECT_GT(times, 20) << "any of them may be drawn";
    others += how ? times : 0;
  }
  EXPECT_EQ(others, 2 * ends);
}

TEST(TimedChecks, CoverDeclaredContentsAloneIfTheTaskListsNoOthers) {
  random_stream random(7);
  int looks = 0;
  timed_checks checks({distribution::declared}, random,
                      [&](std::optional<distribution> how, worst_errors&) {
                        EXPECT_FALSE(how);
                        ++looks;
                        return no_failure;
                      });
  for (int i = 0; i < 20; ++i) checks.check();
  checks.check_at_end(100);
  EXPECT_EQ(looks, 21);
}

TEST(TimedChecks, AcceptABarelyWrongResultOfASingleOutlierOnly) {
  const auto survives = [](distribution bad, double times_allowed) {
    random_stream random(11);
    timed_checks checks(all, random, [&](std::optional<distribution> how, worst_errors& errors) {
      if (how != bad) return no_failure;
      errors.worst_element = times_allowed;
      return wrong;
    });
    try {
      checks.check_at_end(100);
      return true;
    } catch (const timing_failure&) {
      return false;
    }
  };
  EXPECT_TRUE(survives(distribution::one_high, 7));
  EXPECT_TRUE(survives(distribution::one_low, 7));
  EXPECT_FALSE(survives(distribution::one_high, 9));
  EXPECT_FALSE(survives(distribution::outliers, 7));
}

TEST(TimedChecks, ReportThatATimedCallWasWrong) {
  random_stream random(8);
  timed_checks checks(all, random,
                      [](std::optional<distribution>, worst_errors&) { return wrong; });
  try {
    checks.check();
    ADD_FAILURE() << "passed";
  } catch (const timing_failure& e) {
    EXPECT_EQ(e.why.outcome, Outcome::WRONG_RESULT);
    EXPECT_EQ(e.why.message, "off (in a timed call)");
  }
}

TEST(TimedChecks, NeedNoFloat64IfTheReferencesOwnTypesAgree) {
  worst_errors totals;
  std::vector<exactness> asked;
  const program_result<void> found =
      judge_by_degrees(totals, [&](exactness with, worst_errors& seen) {
        asked.push_back(with);
        seen.worst_element = 0.25;
        return no_failure;
      });
  EXPECT_EQ(outcome_of(found), Outcome::OK);
  EXPECT_EQ(asked, std::vector{exactness::own_types});
  EXPECT_EQ(totals.worst_element, 0.25);
}

TEST(TimedChecks, DecideByFloat64IfTheReferencesOwnTypesDisagree) {
  for (const program_result<void>& decision : {no_failure, wrong}) {
    worst_errors totals;
    const program_result<void> found =
        judge_by_degrees(totals, [&](exactness with, worst_errors& seen) {
          seen.worst_element = with == exactness::float64 ? 0.5 : 3;
          return with == exactness::float64 ? decision : wrong;
        });
    EXPECT_EQ(outcome_of(found), outcome_of(decision));
    EXPECT_EQ(totals.worst_element, 0.5) << "the errors are those of the judgement that counts";
  }
}

TEST(TimedChecks, GiveABarelyWrongResultOneSecondChance) {
  random_stream random(9);
  int looks = 0;
  const auto barely = [&](std::optional<distribution> how, worst_errors& totals) {
    ++looks;
    if (looks > 1) {
      EXPECT_EQ(how, distribution::declared)
          << "the same call would be wrong again, so it gets new contents";
      return no_failure;
    }
    totals.worst_element = 1.5;
    return wrong;
  };
  timed_checks checks({distribution::declared}, random, barely);
  EXPECT_NO_THROW(checks.check());
  EXPECT_EQ(looks, 2);
  looks = 0;
  EXPECT_THROW(checks.check(), timing_failure);  // one second chance per timed case
}

// A program that is wrong in one run of five, at random, and faster there.
class careless_side final : public sampled_side {
 public:
  explicit careless_side(std::uint64_t seed)
      : sampled_side(sampled_side::role::candidate), coin_(seed) {}
  void set_parameters(std::uint64_t /*seed*/) override {}
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
    timed_checks checks({distribution::declared, distribution::shifted}, random,
                        [&](std::optional<distribution> how, worst_errors&) {
                          return !how && candidate.is_wrong ? wrong : no_failure;
                        });
    const case_timing timing =
        testing_support::time_pair(candidate, reference, rules, random, &checks);
    EXPECT_EQ(outcome_of(timing.failure), Outcome::WRONG_RESULT) << seed;
  }
}

}  // namespace
}  // namespace hone
