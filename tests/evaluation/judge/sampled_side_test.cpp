#include "evaluation/judge/sampled_side.hpp"

#include <gtest/gtest.h>

#include "tests/support/synthetic_sides.hpp"

namespace hone {
namespace {

using testing_support::synthetic_side;

// A side whose samples begin with a call that takes another time than the calls after it.
class side_with_lead_in final : public sampled_side {
 public:
  side_with_lead_in(role plays, double first_ns, double call_ns)
      : sampled_side(plays), first_ns_(first_ns), call_ns_(call_ns) {}
  void set_parameters(std::uint64_t /*seed*/) override {}
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
  return testing_support::time_pair(candidate, reference, testing_support::synthetic_rules(),
                                    random, nullptr)
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

TEST(SampledSide, DoesNotRewardACallThatDoesTheWorkOfOthers) {
  int calls = 0;
  const auto lumped = [&] { return ++calls % 4 == 0 ? 100e3 : 0.0; };
  random_stream random(3);
  synthetic_side candidate(sampled_side::role::candidate, lumped);
  synthetic_side reference(sampled_side::role::reference, [] { return 25e3; });
  const case_timing timing = testing_support::time_pair(
      candidate, reference, testing_support::synthetic_rules(), random, nullptr);
  EXPECT_LT(timing.ratio.speedup, 1.2);
}

}  // namespace
}  // namespace hone
