#include "evaluation/judge/paired_rounds.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace hone {
namespace {

// A program whose calls take what a function says.
class made_up_program final : public clocked_program {
 public:
  explicit made_up_program(std::function<double()> call_ns) : call_ns_(std::move(call_ns)) {}
  void take_parameters(std::uint64_t seed) override { seeds.push_back(seed); }
  std::vector<double> sample(std::size_t calls) override {
    std::vector<double> times;
    for (std::size_t i = 0; i < calls; ++i) times.push_back(call_ns_());
    samples.push_back(calls);
    return times;
  }
  std::size_t most_calls() const override { return 9; }

  std::vector<std::uint64_t> seeds;
  std::vector<std::size_t> samples;

 private:
  std::function<double()> call_ns_;
};

class PairedRounds : public testing::Test {
 protected:
  std::function<double()> noisy(double ns, double deviation) {
    return [this, ns, deviation] {
      float z = 0;
      noise_.fill_normal({&z, 1});
      return ns * std::exp(deviation * static_cast<double>(z));
    };
  }
  case_timing time(std::function<double()> candidate_ns, std::function<double()> reference_ns,
                   timed_checks* checks = nullptr) {
    made_up_program candidate(std::move(candidate_ns));
    made_up_program reference(std::move(reference_ns));
    timing_rules rules = gpu_timing_rules();
    rules.warm_up_ns = 0;  // made-up time does not pass
    rules.budget_ns =
        0.5e6;  // of real time, which is what rounds cost here: at most some hundred of them
    const case_timing timing = time_pair(candidate, reference, rules, random_, checks);
    EXPECT_EQ(candidate.seeds, reference.seeds);
    return timing;
  }

  timed_checks checks_that(timed_checks::look_at look) {
    return timed_checks({distribution::declared, distribution::shifted}, random_, std::move(look));
  }

  random_stream random_{3};
  random_stream noise_{4};
};

const program_failure right{Outcome::OK, "", ""};
const program_failure wrong{Outcome::WRONG_RESULT, "", "wrong"};

TEST_F(PairedRounds, TheRatioIsReferenceOverCandidate) {
  const case_timing timing = time(noisy(20e3, 0.01), noisy(50e3, 0.01));
  EXPECT_EQ(timing.failure.outcome, Outcome::OK) << timing.failure.message;
  EXPECT_NEAR(timing.ratio.speedup, 2.5, 0.02);
  EXPECT_NEAR(timing.candidate_us, 20, 0.2);
  EXPECT_GE(timing.rounds, 21U);
  EXPECT_EQ(timing.ratio.buckets.size(), bucket_count);
}

TEST_F(PairedRounds, EqualProgramsScoreOne) {
  for (int i = 0; i < 20; ++i) {
    const case_timing timing = time(noisy(4e3, 0.03), noisy(4e3, 0.03));
    EXPECT_EQ(combine({&timing.ratio, 1}).score, 1.0) << timing.ratio.speedup;
  }
}

TEST_F(PairedRounds, CallsThatGoAstrayDoNotMoveTheScore) {
  // One call in a hundred takes three times as long: a processor core was busy elsewhere.
  int calls = 0;
  const auto astray = [&] { return ++calls % 100 == 0 ? 75e3 : 25e3; };
  const case_timing timing = time(astray, [] { return 25e3; });
  EXPECT_NEAR(timing.ratio.speedup, 1, 0.001);
}

TEST_F(PairedRounds, ACallThatDoesTheWorkOfOthersIsNoSaving) {
  int calls = 0;
  const auto lumped = [&] { return ++calls % 4 == 0 ? 100e3 : 0.0; };
  const case_timing timing = time(lumped, [] { return 25e3; });
  EXPECT_LT(timing.ratio.speedup, 1.2);
}

// Calls in samples whose first one takes something else.
class program_with_lead_in final : public clocked_program {
 public:
  program_with_lead_in(double first_ns, double call_ns) : first_ns_(first_ns), call_ns_(call_ns) {}
  void take_parameters(std::uint64_t /*seed*/) override {}
  std::vector<double> sample(std::size_t calls) override {
    std::vector<double> times(calls, call_ns_);
    times.front() = first_ns_;
    return times;
  }
  std::size_t most_calls() const override { return 9; }

 private:
  double first_ns_;
  double call_ns_;
};

double speedup_with_lead_in(double candidates_ns, double references_ns, random_stream& random) {
  program_with_lead_in candidate(candidates_ns, 25e3);
  program_with_lead_in reference(references_ns, 25e3);
  timing_rules rules = gpu_timing_rules();
  rules.warm_up_ns = 0;
  rules.budget_ns = 0.5e6;
  return time_pair(candidate, reference, rules, random, nullptr).ratio.speedup;
}

// One of a pair, which writes down what is asked of it.
class recording_program final : public clocked_program {
 public:
  recording_program(char name, std::string& record) : name_(name), record_(&record) {}
  void take_parameters(std::uint64_t /*seed*/) override {}
  void begin_round() override { *record_ += '|'; }
  std::vector<double> sample(std::size_t calls) override {
    *record_ += name_;
    return std::vector<double>(calls, 25e3);
  }
  std::size_t most_calls() const override { return 9; }

 private:
  char name_;
  std::string* record_;
};

TEST_F(PairedRounds, BothBeginARoundBeforeEitherMakesItsSample) {
  std::string record;
  recording_program candidate('c', record);
  recording_program reference('r', record);
  timing_rules rules = gpu_timing_rules();
  rules.warm_up_ns = 0;
  timed_checks checks =
      checks_that([](std::optional<distribution>, verification_result&) { return right; });
  const case_timing timing = time_pair(candidate, reference, rules, random_, &checks);
  ASSERT_EQ(timing.failure.outcome, Outcome::OK) << timing.failure.message;
  const std::string warm_up = record.substr(0, record.find('|'));
  EXPECT_EQ(warm_up, "rrccr")
      << "the reference's calls once more, as they are beside the candidate";
  std::string rounds = record.substr(warm_up.size());
  ASSERT_EQ(rounds.back(), 'c') << "one that does not count, and is checked";
  rounds.pop_back();
  ASSERT_EQ(rounds.size(), std::size_t{4} * timing.rounds);
  for (std::size_t i = 0; i < rounds.size(); i += 4)
    EXPECT_TRUE(rounds.substr(i, 4) == "||rc" || rounds.substr(i, 4) == "||cr")
        << rounds.substr(i, 4);
}

TEST_F(PairedRounds, ASmallDifferenceIsMeasuredForLonger) {
  // 1 % of 1 ms: no place of its code explains it.
  timing_rules rules = rules_between({}, 1000, gpu_timing_rules());
  rules.warm_up_ns = 0;
  const auto rounds_at = [&](double speedup) {
    made_up_program candidate([speedup] { return 0.9e6 / speedup; });
    made_up_program reference([] { return 0.9e6; });
    return time_pair(candidate, reference, rules, random_, nullptr).rounds;
  };
  EXPECT_EQ(rounds_at(1), 21U);
  EXPECT_EQ(rounds_at(1.01), 84U);
  EXPECT_EQ(rounds_at(1.1), 21U);
  rules = rules_between({}, 5, gpu_timing_rules());
  rules.warm_up_ns = 0;
  EXPECT_EQ(rounds_at(1.01), 21U)
      << "of a call of 5 us that is the luck of its place, and scores 1.00";
  EXPECT_EQ(gpu_calibration_rules().near_equal, 0)
      << "equal programs need not show that they differ";
}

TEST_F(PairedRounds, TheFirstCallOfASampleDoesNotCount) {
  EXPECT_NEAR(speedup_with_lead_in(95e3, 25e3, random_), 1, 0.001);
}

TEST_F(PairedRounds, WhatACandidatesFirstCallDoesForOthersOrAgainstThemCounts) {
  EXPECT_LT(speedup_with_lead_in(50e6, 25e3, random_), 0.01) << "50 ms to heat the chip";
  EXPECT_NEAR(speedup_with_lead_in(100e3 + 9 * 5e3, 25e3, random_), 25.0 / 30, 0.01)
      << "5 us for each of nine calls, beyond what it may take";
  EXPECT_NEAR(speedup_with_lead_in(101e3, 25e3, random_), 1, 0.01)
      << "no step where it begins to count";
}

TEST_F(PairedRounds, WhatAReferencesFirstCallIsMadeToWaitForEarnsNothing) {
  EXPECT_NEAR(speedup_with_lead_in(25e3, 0.9e6, random_), 1, 0.001);
}

TEST_F(PairedRounds, HopelessCandidatesEndEarly) {
  const case_timing timing = time([] { return 600e3; }, [] { return 100e3; });
  EXPECT_EQ(timing.failure.outcome, Outcome::OK);
  EXPECT_EQ(timing.rounds, 3U);
}

TEST_F(PairedRounds, ATimingThatDragsOnEnds) {
  made_up_program candidate([] { return 20e3; });
  made_up_program reference([] { return 20e3; });
  timing_rules rules = gpu_timing_rules();
  rules.warm_up_ns = 0;
  rules.patience_ns = -1e18;  // spent before the first round
  const case_timing timing = time_pair(candidate, reference, rules, random_, nullptr);
  EXPECT_EQ(timing.failure.outcome, Outcome::TIMEOUT);
  EXPECT_TRUE(timing.log_ratios.empty());
}

TEST_F(PairedRounds, WhatDoesNotSettleIsUnstable) {
  const case_timing timing = time(noisy(50e3, 1.2), noisy(50e3, 1.2));
  EXPECT_EQ(timing.failure.outcome, Outcome::UNSTABLE);
}

TEST_F(PairedRounds, EverySuspiciouslyFastSampleIsChecked) {
  int seen = 0;
  timed_checks checks = checks_that([&](std::optional<distribution> how, verification_result&) {
    seen += how ? 0 : 1;
    return right;
  });
  time([] { return 50e3; }, [] { return 50e3; }, &checks);
  EXPECT_GE(seen, 3);  // behind the warm-up, and the first round: nothing had been checked before;
                       // and at the end
  // Ever faster: every round is by far the fastest yet. It stops where times no longer differ.
  int fast = 0;
  double ns = 1e5;
  timed_checks of_ever_faster =
      checks_that([&](std::optional<distribution> how, verification_result&) {
        fast += !how && ns > 1e3 ? 1 : 0;
        return right;
      });
  time([&] { return ns > 1e3 ? ns *= 0.97 : ns; }, [] { return 50e3; }, &of_ever_faster);
  EXPECT_GE(fast,
            15);  // 0.97 to the power of 9 is 0.76 a sample; 17 samples lead from 100 us to 1 us
}

TEST_F(PairedRounds, AWrongCallEndsTheMeasurement) {
  timed_checks checks =
      checks_that([](std::optional<distribution>, verification_result&) { return wrong; });
  EXPECT_EQ(time([] { return 50e3; }, [] { return 50e3; }, &checks).failure.outcome,
            Outcome::WRONG_RESULT);
}

TEST_F(PairedRounds, WhoeverIsWrongFromSomeCallOnNeverPasses) {
  // Right for every distribution until so many calls have been made, then for declared contents
  // alone.
  for (int careful = 0; careful <= 150; careful += 10) {
    int calls = 0;
    timed_checks checks = checks_that([&](std::optional<distribution> how, verification_result&) {
      return how && calls > careful ? wrong : right;
    });
    const auto candidate = [&] {
      ++calls;
      return 50e3;
    };
    const case_timing timing = time(
        candidate, [] { return 50e3; }, &checks);
    EXPECT_EQ(timing.failure.outcome, Outcome::WRONG_RESULT) << careful << " of " << calls;
  }
}

TEST_F(PairedRounds, TheBiasOfTwoProcessesIsTakenOff) {
  // The candidate's process is three per cent faster at everything.
  const case_timing same = time(noisy(9.7e3, 0.01), noisy(10e3, 0.01));
  const process_bias bias = bias_of(same);
  EXPECT_NEAR(bias.log_ratio, std::log(10 / 9.7), 0.005);
  EXPECT_GT(bias.half_width, 0);
  case_timing timing = time(noisy(4.85e3, 0.01), noisy(10e3, 0.01));
  const double width = std::log(timing.ratio.range.high / timing.ratio.range.low);
  take_off(bias, timing);
  EXPECT_NEAR(timing.ratio.speedup, 2, 0.02);
  EXPECT_NEAR(timing.reference_us, 9.7, 0.1);
  EXPECT_GT(std::log(timing.ratio.range.high / timing.ratio.range.low), width);
}

TEST(HostBoundRules, AreForReferencesThatLeaveTheGpuIdle) {
  // An element-wise kernel of 4 us behind 70 us of writing: its host takes 12.
  EXPECT_FALSE(waits_for_host(12.0 / 100, 0.6));
  // A recurrent layer of 150 short kernels, each launched in 9 us, behind the longest head start
  // that there is: the last ends with the host.
  EXPECT_TRUE(waits_for_host(1350.0 / 1400, 0.3));
  // One that reads a result on its host: all of its work is done by then.
  EXPECT_FALSE(waits_for_host(1350.0 / 1400, 0.98));
}

TEST(HostBoundRules, AreAGpusButForWhatOthersDoToAProcessor) {
  const timing_rules gpu = gpu_timing_rules();
  const timing_rules host_bound = host_bound_timing_rules();
  const timing_rules processors;
  EXPECT_EQ(host_bound.target_width, gpu.target_width);
  EXPECT_EQ(host_bound.min_rounds, gpu.min_rounds);
  EXPECT_EQ(host_bound.unstable_width, processors.unstable_width);
  EXPECT_EQ(host_bound.unstable_variance, processors.unstable_variance);
  EXPECT_EQ(host_bound.reverify_agreement, processors.reverify_agreement);
}

}  // namespace
}  // namespace hone
