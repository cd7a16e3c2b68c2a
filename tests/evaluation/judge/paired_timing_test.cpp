#include "evaluation/judge/paired_timing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/judge/process_bias.hpp"
#include "evaluation/judge/sampled_side.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/synthetic_sides.hpp"

namespace hone {
namespace {

using testing_support::synthetic_rules;
using testing_support::synthetic_side;
using role = sampled_side::role;

const timed_checks::checked_call correct;
const timed_checks::checked_call incorrect{distribution::declared,
                                           failed(Outcome::WRONG_RESULT, "wrong")};

// A side whose runs of one call of 20 ms are delayed by other work, two of three.
class delayed_side final : public sampled_side {
 public:
  using sampled_side::sampled_side;
  void set_parameters(const drawn_contents& /*contents*/) override {}
  std::vector<double> sample(std::size_t /*calls*/) override {
    return {++runs_ % 3 == 0 ? 20e6 : 30e6};
  }
  std::size_t max_calls() const override { return 1; }

 private:
  int runs_ = 0;
};

class PairedTiming : public testing::Test {
 protected:
  std::function<double()> noisy(double ns, double deviation) {
    return testing_support::noisy(noise_, ns, deviation);
  }
  case_timing time(std::function<double()> candidate_ns, std::function<double()> reference_ns,
                   timed_checks* checks = nullptr) {
    synthetic_side candidate(role::candidate, std::move(candidate_ns));
    synthetic_side reference(role::reference, std::move(reference_ns));
    case_timing timing = time_pair(candidate, reference, synthetic_rules(), random_, checks);
    EXPECT_EQ(candidate.seeds, reference.seeds);
    return timing;
  }

  timed_checks checks_that(timed_checks::check_function check) {
    return timed_checks({distribution::declared, distribution::shifted}, random_, std::move(check));
  }

  random_stream random_{3};
  random_stream noise_{4};
};

TEST_F(PairedTiming, TheRatioIsReferenceOverCandidate) {
  const case_timing timing = time(noisy(20e3, 0.01), noisy(50e3, 0.01));
  EXPECT_EQ(outcome_of(timing.failure), Outcome::OK) << message_of(timing.failure);
  EXPECT_NEAR(timing.ratio.speedup, 2.5, 0.02);
  EXPECT_NEAR(timing.candidate_us, 20, 0.2);
  EXPECT_GE(timing.rounds, 7U);  // 14 and more, unless something else takes the budget's real time
  EXPECT_EQ(timing.ratio.buckets.size(), bucket_count);
}

TEST_F(PairedTiming, EqualProgramsScoreOne) {
  int not_one = 0;
  for (int i = 0; i < 20; ++i) {
    const case_timing timing = time(noisy(4e3, 0.03), noisy(4e3, 0.03));
    not_one += combine({&timing.ratio, 1}).score != 1.0 ? 1 : 0;
    EXPECT_NEAR(timing.ratio.speedup, 1, 0.02);
  }
  EXPECT_LE(not_one, 1) << "the interval that decides is one of 95 %";
}

TEST_F(PairedTiming, AFewSlowCallsDoNotMoveTheScore) {
  // One call in a hundred takes three times as long, as if its processor core had been busy.
  int calls = 0;
  const auto astray = [&] { return ++calls % 100 == 0 ? 75e3 : 25e3; };
  const case_timing timing = time(astray, [] { return 25e3; });
  EXPECT_NEAR(timing.ratio.speedup, 1, 0.001);
}

// A side with runs of one call, some of 9 ms and the others of 5 ms.
class uneven_side final : public sampled_side {
 public:
  explicit uneven_side(std::function<bool(int)> is_slow)
      : sampled_side(role::candidate), is_slow_(std::move(is_slow)) {}
  void set_parameters(const drawn_contents& /*contents*/) override {}
  std::vector<double> sample(std::size_t /*calls*/) override {
    return {is_slow_(++runs_) ? 9e6 : 5e6};
  }
  std::size_t max_calls() const override { return 1; }

 private:
  std::function<bool(int)> is_slow_;
  int runs_ = 0;
};

TEST_F(PairedTiming, MakesFurtherRoundsWhereOneWasDisturbed) {
  std::size_t max_rounds = 0;
  for (int disturbed = 3; disturbed < 20; ++disturbed) {
    uneven_side candidate([&](int run) { return run == disturbed; });
    uneven_side reference([](int) { return false; });
    timing_rules rules = synthetic_rules();
    rules.clocked_budget_ns = 1e9;
    const case_timing timing = time_pair(candidate, reference, rules, random_, nullptr);
    EXPECT_EQ(outcome_of(timing.failure), Outcome::OK) << message_of(timing.failure);
    EXPECT_NEAR(timing.ratio.speedup, 1, 0.001);
    max_rounds = std::max<std::size_t>(max_rounds, timing.rounds);
  }
  EXPECT_EQ(max_rounds, 21U);
}

TEST_F(PairedTiming, AProgramOfTwoSpeedsIsUnstable) {
  uneven_side candidate([](int run) { return run / 8 % 2 == 0; });
  uneven_side reference([](int) { return false; });
  timing_rules rules = synthetic_rules();
  rules.unstable_width = 1;
  const case_timing timing = time_pair(candidate, reference, rules, random_, nullptr);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::UNSTABLE);
  EXPECT_GE(timing.rounds, 21U);
}

// A side that appends '|' to a record in begin_round(), and its name in sample(). Keeps the
// contents of its rounds.
class recording_side final : public sampled_side {
 public:
  recording_side(role plays, char name, std::string& record)
      : sampled_side(plays), name_(name), record_(&record) {}
  void set_parameters(const drawn_contents& /*contents*/) override {}
  void begin_round(const drawn_round& round) override {
    *record_ += '|';
    rounds.push_back(round);
  }
  std::vector<double> sample(std::size_t calls) override {
    *record_ += name_;
    return std::vector<double>(calls, 25e3);
  }
  std::size_t max_calls() const override { return 9; }

  std::vector<drawn_round> rounds;

 private:
  char name_;
  std::string* record_;
};

TEST_F(PairedTiming, BeginsARoundOnBothSidesBeforeAnySample) {
  std::string record;
  recording_side candidate(role::candidate, 'c', record);
  recording_side reference(role::reference, 'r', record);
  timing_rules rules = gpu_timing_rules();
  rules.warm_up_ns = 0;
  timed_checks checks = checks_that([](const auto&) { return correct; });
  const case_timing timing = time_pair(candidate, reference, rules, random_, &checks);
  ASSERT_EQ(outcome_of(timing.failure), Outcome::OK) << message_of(timing.failure);
  const std::string warm_up = record.substr(0, record.find('|'));
  // One call is a warm-up of no time, and another is clocked. The reference is calibrated again
  // once the candidate is warm.
  EXPECT_EQ(warm_up, "rrccr");
  const std::string rounds = record.substr(warm_up.size());
  ASSERT_EQ(rounds.size(), 4 * reference.rounds.size());
  for (std::size_t i = 0; i < rounds.size(); i += 4)
    EXPECT_TRUE(rounds.substr(i, 4) == "||rc" || rounds.substr(i, 4) == "||cr")
        << rounds.substr(i, 4);
}

TEST_F(PairedTiming, GivesBothSidesTheSameContentsInARound) {
  std::string record;
  recording_side candidate(role::candidate, 'c', record);
  recording_side reference(role::reference, 'r', record);
  timed_checks checks = checks_that([](const auto&) { return correct; });
  const case_timing timing = time_pair(candidate, reference, gpu_timing_rules(), random_, &checks);
  std::set<std::uint64_t> seeds;
  std::size_t counted = 0;
  ASSERT_EQ(candidate.rounds.size(), reference.rounds.size());
  for (std::size_t i = 0; i < reference.rounds.size(); ++i) {
    EXPECT_EQ(candidate.rounds[i].seed, reference.rounds[i].seed);
    EXPECT_EQ(candidate.rounds[i].of_calls, reference.rounds[i].of_calls);
    seeds.insert(candidate.rounds[i].seed);
    counted += candidate.rounds[i].counts() ? 1 : 0;
  }
  EXPECT_EQ(seeds.size(), reference.rounds.size()) << "fresh in each round";
  EXPECT_EQ(counted, timing.rounds) << "rounds of other contents do not count";
}

// Returns the rounds of a timing, each as the order in which the candidate (c) and the reference
// (r) were sampled and checks (k) were made. Where batches have one run, every round is checked.
std::set<std::string> rounds_with_checks(std::size_t runs_per_batch, random_stream& random) {
  std::string record;
  recording_side candidate(role::candidate, 'c', record);
  recording_side reference(role::reference, 'r', record);
  timing_rules rules = gpu_timing_rules();
  rules.check_one_in = 1;
  rules.min_runs_per_batch = rules.max_runs_per_batch = runs_per_batch;
  timed_checks checks({}, random, [&](const auto&) {
    record += 'k';
    return correct;
  });
  time_pair(candidate, reference, rules, random, &checks);
  std::set<std::string> rounds;
  for (std::size_t begin = record.find("||"); begin != std::string::npos;) {
    const std::size_t end = record.find("||", begin + 2);
    rounds.insert(record.substr(begin + 2, end - begin - 2));
    begin = end;
  }
  return rounds;
}

TEST_F(PairedTiming, ChecksARunAfterTheReferenceHasMadeTheSameCalls) {
  EXPECT_EQ(rounds_with_checks(1, random_), (std::set<std::string>{"crk", "rck"}));
}

TEST_F(PairedTiming, DoesNotInterruptABatchOfSeveralRuns) {
  const std::set<std::string> rounds = rounds_with_checks(2, random_);
  ASSERT_FALSE(rounds.empty());
  for (const std::string& round : rounds) {
    EXPECT_GE(round.find('r', round.find('c')), round.rfind('c')) << round;
    EXPECT_EQ(std::count(round.begin(), round.end(), 'r'), 2) << round;
  }
  EXPECT_THAT(rounds, testing::Contains(testing::HasSubstr("ck")));
}

TEST_F(PairedTiming, ChecksOneRunOfAWarmUpOrEachOfThem) {
  for (const bool checks_every_run : {false, true}) {
    std::string record;
    recording_side candidate(role::candidate, 'c', record);
    recording_side reference(role::reference, 'r', record);
    timing_rules rules = gpu_timing_rules();
    rules.warm_up_ns = 1e5;
    rules.checks_every_warm_up_run = checks_every_run;
    timed_checks checks = checks_that([&](const auto&) {
      record += 'k';
      return correct;
    });
    time_pair(candidate, reference, rules, random_, &checks);
    const std::string warm_up = record.substr(0, record.find('|'));
    const auto checked = std::count(warm_up.begin(), warm_up.end(), 'k');
    if (checks_every_run) {
      EXPECT_GT(checked, 1) << warm_up;
    } else {
      EXPECT_EQ(checked, 1) << warm_up;
    }
    EXPECT_NE(warm_up.find("kr"), std::string::npos) << "the last run is checked: " << warm_up;
  }
}

TEST_F(PairedTiming, MeasuresASmallDifferenceForLonger) {
  // 1 % of 1 ms is more than the place of a program's code explains.
  timing_rules rules = rules_between({}, 1000, gpu_timing_rules());
  rules.warm_up_ns = 0;
  const auto rounds_at = [&](double speedup) {
    synthetic_side candidate(role::candidate, [speedup] { return 0.9e6 / speedup; });
    synthetic_side reference(role::reference, [] { return 0.9e6; });
    return time_pair(candidate, reference, rules, random_, nullptr).rounds;
  };
  EXPECT_EQ(rounds_at(1), 14U);
  EXPECT_EQ(rounds_at(1.01), 84U);
  EXPECT_EQ(rounds_at(1.1), 14U);
  rules = rules_between({}, 5, gpu_timing_rules());
  rules.warm_up_ns = 0;
  EXPECT_EQ(rounds_at(1.01), 14U)
      << "1 % of 5 us may come from the place of the code, and scores 1.00";
  EXPECT_EQ(gpu_calibration_rules().near_equal, 0) << "a calibration compares equal programs";
}

TEST_F(PairedTiming, NeedsFewRoundsWhereItConfirmsAFirstMeasurement) {
  timing_rules rules = synthetic_rules();
  rules.equal_log_ratio = std::log(1.02);  // the bias of the processes is part of every round
  rules.expected_log_ratio = std::log(4);
  const auto timing_at = [&](double speedup) {
    synthetic_side candidate(role::candidate, [speedup] { return 100e3 * 1.02 / speedup; });
    synthetic_side reference(role::reference, [] { return 100e3 * 1.02 * 1.02; });
    return time_pair(candidate, reference, rules, random_, nullptr);
  };
  const case_timing confirmed = timing_at(4.04);
  EXPECT_TRUE(confirmed.is_confirmed);
  EXPECT_EQ(confirmed.rounds, 7U);
  EXPECT_EQ(outcome_of(confirmed.failure), Outcome::OK);
  const case_timing other = timing_at(4.2);
  EXPECT_FALSE(other.is_confirmed);
  EXPECT_GT(other.rounds, confirmed.rounds) << "it is measured in full";
}

TEST_F(PairedTiming, CountsTheFastestOfSeveralRunsEvenIfCallsAreLong) {
  timing_rules rules = synthetic_rules();
  rules.runs_per_batch = 3;
  rules.min_runs_per_batch = rules.max_runs_per_batch = 3;
  rules.min_rounds = 7;
  delayed_side candidate(role::candidate);
  synthetic_side reference(role::reference, [] { return 20e6; });
  const case_timing timing = time_pair(candidate, reference, rules, random_, nullptr);
  EXPECT_NEAR(timing.ratio.speedup, 1, 0.001);
}

TEST_F(PairedTiming, EndsEarlyForHopelessCandidates) {
  const case_timing timing = time([] { return 600e3; }, [] { return 100e3; });
  EXPECT_EQ(outcome_of(timing.failure), Outcome::OK);
  EXPECT_EQ(timing.rounds, 3U);
}

TEST_F(PairedTiming, IsUnstableIfTheRatiosDoNotSettle) {
  const case_timing timing = time(noisy(50e3, 1.2), noisy(50e3, 1.2));
  EXPECT_EQ(outcome_of(timing.failure), Outcome::UNSTABLE);
}

TEST_F(PairedTiming, ChecksEverySuspiciouslyFastSample) {
  int made = 0;
  timed_checks checks = checks_that([&](const auto&) {
    ++made;
    return correct;
  });
  time([] { return 50e3; }, [] { return 50e3; }, &checks);
  EXPECT_GE(made, 2) << "after the warm-up, and in the first round: no run was checked before";
  // Every sample is the fastest so far, until the times no longer change. A round of other contents
  // is checked anyway, and has no say in how fast a sample may be.
  int fast = 0;
  double ns = 1e5;
  timed_checks of_ever_faster({distribution::declared}, random_, [&](const auto&) {
    fast += ns > 1e3 ? 1 : 0;
    return correct;
  });
  time([&] { return ns > 1e3 ? ns *= 0.97 : ns; }, [] { return 50e3; }, &of_ever_faster);
  // Each sample takes 0.97^9 = 0.76 of the last one; 17 samples lead from 100 us to 1 us.
  EXPECT_GE(fast, 15);
}

TEST_F(PairedTiming, AWrongCallEndsTheMeasurement) {
  timed_checks checks = checks_that([](const auto&) { return incorrect; });
  EXPECT_EQ(outcome_of(time([] { return 50e3; }, [] { return 50e3; }, &checks).failure),
            Outcome::WRONG_RESULT);
}

TEST_F(PairedTiming, CatchesAProgramThatIsWrongFromSomeCallOn) {
  for (int careful = 0; careful <= 120; careful += 10) {
    int calls = 0;
    timed_checks checks =
        checks_that([&](const auto&) { return calls > careful ? incorrect : correct; });
    const auto candidate = [&] {
      ++calls;
      return 50e3;
    };
    const case_timing timing = time(
        candidate, [] { return 50e3; }, &checks);
    EXPECT_EQ(outcome_of(timing.failure), Outcome::WRONG_RESULT) << careful << " of " << calls;
  }
}

}  // namespace
}  // namespace hone
