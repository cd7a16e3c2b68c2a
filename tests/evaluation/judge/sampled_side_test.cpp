#include "evaluation/judge/sampled_side.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <thread>

#include "tests/support/synthetic_sides.hpp"

namespace hone {
namespace {

using testing_support::synthetic_side;

// A side whose samples begin with a call that takes another time than the calls after it.
class side_with_lead_in final : public sampled_side {
 public:
  side_with_lead_in(role plays, double first_ns, double call_ns)
      : sampled_side(plays), first_ns_(first_ns), call_ns_(call_ns) {}
  void set_parameters(const drawn_contents& /*contents*/) override {}
  std::vector<double> sample(std::size_t calls) override {
    std::vector<double> times(calls, call_ns_);
    times.front() = first_ns_;
    return times;
  }
  std::size_t max_calls() const override { return 9; }

 private:
  double first_ns_;
  double call_ns_;
};

double speedup_with_lead_in(double candidates_ns, double references_ns) {
  random_stream random(3);
  side_with_lead_in candidate(sampled_side::role::candidate, candidates_ns, 25e3);
  side_with_lead_in reference(sampled_side::role::reference, references_ns, 25e3);
  return time_pair(candidate, reference, testing_support::synthetic_rules(), random, nullptr)
      .ratio.speedup;
}

TEST(SampledSide, DoesNotCountTheFirstCallOfASample) {
  EXPECT_NEAR(speedup_with_lead_in(95e3, 25e3), 1, 0.001);
}

TEST(SampledSide, ChargesExcessTimeOfTheCandidatesFirstCall) {
  EXPECT_LT(speedup_with_lead_in(50e6, 25e3), 0.01) << "50 ms to heat the chip";
  EXPECT_NEAR(speedup_with_lead_in(100e3 + 9 * 5e3, 25e3), 25.0 / 30, 0.01)
      << "45 us beyond the allowance, 5 us for each of nine calls";
  EXPECT_NEAR(speedup_with_lead_in(101e3, 25e3), 1, 0.01) << "the charge begins at 0";
}

TEST(SampledSide, IgnoresADelayOfTheReferencesFirstCall) {
  EXPECT_NEAR(speedup_with_lead_in(25e3, 0.9e6), 1, 0.001);
}

// Returns the numbers of calls in the samples that a round of the two sides makes.
std::pair<std::size_t, std::size_t> calls_of_round(double candidates_ns, double references_ns) {
  side_with_lead_in candidate(sampled_side::role::candidate, candidates_ns, candidates_ns);
  side_with_lead_in reference(sampled_side::role::reference, references_ns, references_ns);
  sampled_side::pair_up(candidate, reference);
  for (side_with_lead_in* side : {&reference, &candidate}) {
    side->run(0);
    side->end_warm_up();
  }
  return {candidate.run(0).calls, reference.run(0).calls};
}

TEST(SampledSide, TreatsTwoCallsOfAboutTheLimitsLengthAlike) {
  EXPECT_EQ(calls_of_round(0.9e6, 0.9e6), std::make_pair(std::size_t{3}, std::size_t{3}));
  EXPECT_EQ(calls_of_round(1.1e6, 0.9e6), std::make_pair(std::size_t{3}, std::size_t{3}));
  EXPECT_EQ(calls_of_round(0.9e6, 1.1e6), std::make_pair(std::size_t{3}, std::size_t{3}));
  EXPECT_EQ(calls_of_round(1.1e6, 1.1e6), std::make_pair(std::size_t{1}, std::size_t{1}));
  EXPECT_EQ(calls_of_round(0.1e6, 10e6), std::make_pair(std::size_t{3}, std::size_t{1}));
}

// A side whose first calls take real time, as those that load code do.
class loading_side final : public sampled_side {
 public:
  explicit loading_side(role plays, double call_ns) : sampled_side(plays), call_ns_(call_ns) {}
  void set_parameters(const drawn_contents& /*contents*/) override {}
  std::vector<double> sample(std::size_t calls) override {
    const bool is_first = samples++ == 0;
    std::this_thread::sleep_for(std::chrono::microseconds(is_first ? 8000 : calls * 200));
    return std::vector<double>(calls, is_first ? 8e6 : call_ns_);
  }
  std::size_t max_calls() const override { return 9; }

  std::size_t samples = 0;

 private:
  double call_ns_;
};

TEST(SampledSide, MakesAsManyCallsAsAnEqualProgramThatHasLoadedItsCode) {
  loading_side reference(sampled_side::role::reference, 100e3);
  loading_side candidate(sampled_side::role::candidate, 100e3);
  sampled_side::pair_up(candidate, reference);
  for (loading_side* side : {&reference, &candidate}) {
    side->run(0);
    side->end_warm_up();
    EXPECT_EQ(side->samples, 2U) << "the first call alone tells nothing";
  }
  const std::size_t calls = reference.run(1.2e6).calls;
  EXPECT_EQ(candidate.run(1.2e6).calls, calls);
  EXPECT_GE(calls, 3U) << "six calls on an idle machine";
}

TEST(SampledSide, ACandidateDoesNotChooseItsNumberOfCalls) {
  loading_side reference(sampled_side::role::reference, 100e3);
  side_with_lead_in candidate(sampled_side::role::candidate, 10e3, 10e3);  // takes no wall time
  sampled_side::pair_up(candidate, reference);
  for (sampled_side* side :
       {static_cast<sampled_side*>(&reference), static_cast<sampled_side*>(&candidate)}) {
    side->run(0);
    side->end_warm_up();
  }
  EXPECT_LE(candidate.run(0.6e6).calls, 6U) << "a call has what surrounds one of the reference";
}

// Returns the number of samples that a warm reference makes to recalibrate next to a candidate.
std::size_t recalibrations(double candidates_ns, double references_ns) {
  loading_side reference(sampled_side::role::reference, references_ns);
  side_with_lead_in candidate(sampled_side::role::candidate, candidates_ns, candidates_ns);
  sampled_side::pair_up(candidate, reference);
  for (sampled_side* side : std::initializer_list<sampled_side*>{&reference, &candidate}) {
    side->run(0);
    side->end_warm_up();
  }
  const std::size_t before = reference.samples;
  reference.recalibrate();
  return reference.samples - before;
}

TEST(SampledSide, ClocksAReferenceAgainOnlyIfANumberOfCallsFollowsFromIt) {
  EXPECT_EQ(recalibrations(100e3, 100e3), 1U);
  EXPECT_EQ(recalibrations(100e3, 10e6), 1U) << "the candidate's pace follows the reference's";
  EXPECT_EQ(recalibrations(1.5e6, 40e6), 1U) << "the candidate makes several calls";
  EXPECT_EQ(recalibrations(1.1e6, 1.1e6), 1U) << "the call may be short once it is warm";
  EXPECT_EQ(recalibrations(10e6, 10e6), 0U);
}

TEST(SampledSide, DoesNotRewardACallThatDoesTheWorkOfOthers) {
  int calls = 0;
  const auto lumped = [&] { return ++calls % 4 == 0 ? 100e3 : 0.0; };
  random_stream random(3);
  synthetic_side candidate(sampled_side::role::candidate, lumped);
  synthetic_side reference(sampled_side::role::reference, [] { return 25e3; });
  const case_timing timing =
      time_pair(candidate, reference, testing_support::synthetic_rules(), random, nullptr);
  EXPECT_LT(timing.ratio.speedup, 1.2);
}

}  // namespace
}  // namespace hone
