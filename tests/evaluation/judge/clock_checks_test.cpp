#include "evaluation/judge/clock_checks.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/failures.hpp"

namespace hone {
namespace {

TEST(SlowedReference, TakesATenthLongerThanBesideItself) {
  EXPECT_FALSE(is_slowed(100, 100));
  EXPECT_FALSE(is_slowed(109, 100));
  EXPECT_TRUE(is_slowed(112, 100));
  EXPECT_FALSE(is_slowed(5.2, 4)) << "short kernels may differ by a microsecond";
  EXPECT_FALSE(is_slowed(1000, 0)) << "its time against itself is unknown";
}

TEST(UnseenTime, IsTheDifferenceToTheReferenceOfTheSameRound) {
  // Some rounds have more flushes before their calls, for which the host waits on both sides.
  EXPECT_DOUBLE_EQ(
      unseen_beside({101e3, 161e3, 102e3, 162e3, 101e3}, {100e3, 160e3, 100e3, 160e3, 100e3}), 1e3);
  EXPECT_DOUBLE_EQ(unseen_beside({101e3, 161e3}, {100e3}), 1e3)
      << "a round that only one side has finished does not count";
  EXPECT_DOUBLE_EQ(unseen_beside({}, {}), 0);
}

TEST(UnseenTime, DoesNotCountIfOnlyAFewRoundsAreDelayed) {
  std::vector<double> candidate(21, 100e3);
  const std::vector<double> reference(21, 100e3);
  for (const std::size_t round : {0, 1, 2, 3, 4, 5}) candidate[round] += 400e3;
  EXPECT_DOUBLE_EQ(unseen_beside(candidate, reference), 0);
}

// A score is the median of seven buckets' medians. Fewer than half of the rounds can move it if
// they are distributed accordingly.
TEST(UnseenTime, CountsIfItsRoundsCouldMoveTheScore) {
  std::vector<double> candidate(21, 100e3);
  const std::vector<double> reference(21, 100e3);
  for (const std::size_t round : {0, 7, 1, 8, 2, 9, 3, 10}) candidate[round] += 30e3;
  EXPECT_DOUBLE_EQ(unseen_beside(candidate, reference), 30e3);
}

TEST(UnseenTime, IsDoubtfulBeyondWhatEqualProgramsHave) {
  EXPECT_FALSE(is_doubtful(3, 40)) << "the host's clock varies by that much";
  EXPECT_FALSE(is_doubtful(-15, 40));
  EXPECT_FALSE(is_doubtful(5.4, 50));
  EXPECT_TRUE(is_doubtful(5.6, 50));
  EXPECT_FALSE(is_doubtful(50, 5000)) << "that is little for a long call";
  EXPECT_TRUE(is_doubtful(60, 5000));
}

TEST(UnseenTime, IsLateWorkBeyondWhatHonestProgramsHave) {
  EXPECT_FALSE(find_unseen_time(11, 210)) << "a captured convolution";
  EXPECT_FALSE(find_unseen_time(33, 2985)) << "another one";
  EXPECT_FALSE(find_unseen_time(-80, 40));
  // A call of 100 us that moved its first event 60 us later.
  const auto found = find_unseen_time(60, 40);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outcome, Outcome::CHEATING);
  EXPECT_EQ(found->kind, "late_work");
  EXPECT_FALSE(find_unseen_time(290, 5000)) << "that is little for a long call, and is charged";
  EXPECT_TRUE(find_unseen_time(310, 5000));
}

TEST(UnseenTime, IsDistinguishedFromOtherFailuresOfTheMeasurement) {
  burst_clock honest;
  honest.device_ns = 30e3;
  honest.wall_ns = 30e3;
  case_timing timing;
  timing.candidate_us = 30;
  timing.unseen_us = 70;
  judge_clocks(honest, honest, false, timing);
  EXPECT_EQ(message_of(timing.failure), find_unseen_time(70, 30)->message);
  EXPECT_TRUE(timing.has_unseen_time);
  timing.unseen_us = 0;
  judge_clocks(honest, honest, true, timing);
  EXPECT_EQ(outcome_of(timing.failure), Outcome::UNSTABLE) << "the trace shows nothing";
  EXPECT_FALSE(timing.has_unseen_time);
}

TEST(UnseenTime, IsChargedBeyondTheUncertaintyOfTheClocks) {
  EXPECT_EQ(unseen_charge(0.5, 40), 0);
  EXPECT_EQ(unseen_charge(-12, 40), 0) << "negative unseen time earns nothing";
  EXPECT_EQ(unseen_charge(2.5, 500), 0);
  // A call of 8 us that moved its first event 3 us later.
  EXPECT_NEAR(unseen_charge(3, 5), 2.475, 1e-9);
}

TEST(UnseenTime, ThatIsChargedKeepsAnEqualProgramAtOne) {
  case_timing timing;
  timing.candidate_us = 4;
  timing.ratio.range = {0.97, 1.02};
  charge(0.2, timing);
  EXPECT_DOUBLE_EQ(timing.ratio.range.low, 0.97 * 4 / 4.2);
  EXPECT_DOUBLE_EQ(timing.ratio.range.high, 1.02) << "unseen time may be chance";
}

TEST(UnseenTime, ThatIsChargedLengthensEveryCall) {
  case_timing timing;
  timing.candidate_us = 5;
  timing.reference_us = 8;
  timing.log_ratios = {std::log(1.6), std::log(1.5)};
  timing.ratio.buckets = {1.6, 1.5};
  timing.ratio.speedup = 1.6;
  timing.ratio.range = {1.5, 1.7};
  charge(3, timing);
  EXPECT_DOUBLE_EQ(timing.candidate_us, 8);
  EXPECT_DOUBLE_EQ(timing.ratio.speedup, 1);
  EXPECT_NEAR(timing.log_ratios[0], 0, 1e-12);
  EXPECT_DOUBLE_EQ(timing.ratio.buckets[1], 1.5 * 5 / 8);
  EXPECT_DOUBLE_EQ(timing.ratio.range.low, 1.5 * 5 / 8);
  EXPECT_DOUBLE_EQ(timing.ratio.range.high, 1.7 * 5 / 8);
  const case_timing before = timing;
  charge(0, timing);
  EXPECT_EQ(timing.ratio.speedup, before.ratio.speedup);
}

TEST(Clocks, AreAllCheckedAndUnseenTimeIsCharged) {
  const burst_clock burst{.device_ns = 3e6, .wall_ns = 3e6, .calls = 100};
  const burst_clock traced{
      .device_ns = 3e6, .wall_ns = 3e6, .span_ns = 3e6, .busy_ns = 2.9e6, .calls = 100};
  case_timing good;
  good.failure = {Outcome::OK, "", ""};
  good.candidate_us = 30;
  good.reference_us = 60;
  good.floor_us = 1;
  good.ratio.speedup = 2;
  good.ratio.range = {1.9, 2.1};
  const auto judged = [&](case_timing timing) {
    judge_clocks(burst, traced, true, timing);
    return timing;
  };
  EXPECT_EQ(outcome_of(judged(good).failure), Outcome::OK);
  EXPECT_EQ(judged(good).ratio.speedup, 2);
  case_timing forged = good;
  forged.unseen_us = 3;
  EXPECT_EQ(outcome_of(judged(forged).failure), Outcome::OK);
  EXPECT_DOUBLE_EQ(judged(forged).candidate_us, 30 + 3 - 0.5 - 0.005 * 30);
  forged.unseen_us = 20;
  EXPECT_EQ(outcome_of(judged(forged).failure), Outcome::OK);
  EXPECT_DOUBLE_EQ(judged(forged).candidate_us, 30 + 20 - 0.5 - 0.005 * 30) << "it pays nothing";
  EXPECT_TRUE(judged(forged).has_unseen_time) << "it is timed again";
  forged.unseen_us = 60;
  EXPECT_EQ(kind_of(judged(forged).failure), "late_work");
  EXPECT_EQ(judged(forged).candidate_us, 30) << "a failed measurement is not charged";
  case_timing impossible = good;
  impossible.floor_us = 31;
  EXPECT_EQ(kind_of(judged(impossible).failure), "impossible_time");
  case_timing short_of_work = good;
  short_of_work.candidate_us = 20;
  EXPECT_EQ(kind_of(judged(short_of_work).failure), "late_work")
      << "the GPU is busy for 29 us a call";
}

TEST(ImpossibleTime, IsLessThanWritingTheOutputsTakes) {
  // An H200 has 60 MB of L2 cache and 4,800 GB/s to DRAM. Of 480 MB, it writes 420 MB to DRAM in
  // 87.5 us and 60 MB to the cache in 2.5 us.
  const double floor_us = gpu_write_floor_us(480'000'000, 60'000'000, 4800);
  EXPECT_NEAR(floor_us, 90, 0.1);
  EXPECT_FALSE(find_impossible_time(91, floor_us));
  const auto found = find_impossible_time(89, floor_us);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "impossible_time");
  EXPECT_NEAR(gpu_write_floor_us(1'000'000, 60'000'000, 4800), 0.042, 0.001)
      << "outputs that fit into the cache";
  EXPECT_LT(gpu_write_floor_us(480'000'000, 60'000'000, 0), floor_us)
      << "if the bandwidth is unknown";
}

TEST(ThreeClocks, AgreeOnHonestWork) {
  EXPECT_FALSE(find_disagreement(
      {.device_ns = 3e6, .wall_ns = 3.02e6, .calls = 30},
      {.device_ns = 3.3e6, .wall_ns = 3.3e6, .span_ns = 3.29e6, .busy_ns = 3e6, .calls = 30}, 101e3,
      true));
}

TEST(ThreeClocks, WorkAfterTheTimedRegionIsLateWork) {
  const auto found = find_disagreement(
      {.device_ns = 3e6, .wall_ns = 3e6, .calls = 30},
      {.device_ns = 3e6, .wall_ns = 3e6, .span_ns = 3.5e6, .busy_ns = 3.4e6, .calls = 30}, 100e3,
      true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "late_work");
}

TEST(ThreeClocks, AHostThatWaitsLongerThanTheDeviceWorksIsUnstable) {
  const auto found =
      find_disagreement({.device_ns = 3e6, .wall_ns = 4e6, .calls = 30},
                        {.device_ns = 3e6, .busy_ns = 3e6, .calls = 30}, 100e3, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outcome, Outcome::UNSTABLE);
}

TEST(ThreeClocks, ATraceThatShowsTheReferenceMustShowTheCandidate) {
  const burst_clock burst{.device_ns = 3e6, .wall_ns = 3e6, .calls = 30};
  const burst_clock blind{.device_ns = 3e6, .wall_ns = 3e6, .calls = 30};
  const auto found = find_disagreement(burst, blind, 100e3, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outcome, Outcome::UNSTABLE);
  EXPECT_FALSE(find_disagreement(burst, blind, 100e3, false))
      << "without CUPTI, only the other two clocks are compared";
}

TEST(ThreeClocks, TwoPerCentAndTheEndsOfABurstAreNoDelay) {
  EXPECT_FALSE(is_late_on_host({.device_ns = 3e6, .wall_ns = 3.1e6, .calls = 30}));
  EXPECT_TRUE(is_late_on_host({.device_ns = 3e6, .wall_ns = 3.2e6, .calls = 30}));
}

TEST(ThreeClocks, ABurstThatItsHostDelayedIsRepeated) {
  const auto after = [](int hiccups) {
    int bursts = 0;
    const burst_clock last = undisturbed_burst([&] {
      return burst_clock{.device_ns = 3e6, .wall_ns = bursts++ < hiccups ? 4e6 : 3e6, .calls = 30};
    });
    return std::pair(bursts, is_late_on_host(last));
  };
  EXPECT_EQ(after(0), std::pair(1, false));
  EXPECT_EQ(after(3), std::pair(4, false));
  EXPECT_EQ(after(100), std::pair(5, true))
      << "a host that is always late is not merely interrupted";
}

TEST(ThreeClocks, ATraceInASlowPlaceIsRepeatedElsewhere) {
  const auto after = [](int slow_places) {
    int traces = 0;
    int moves = 0;
    const burst_clock least = typical_trace(
        67e3,
        [&] {
          const double busy_us = traces++ < slow_places ? 110 - traces : 68;
          return burst_clock{.busy_ns = 30 * busy_us * 1e3, .calls = 30};
        },
        [&] { ++moves; });
    EXPECT_EQ(moves, traces - 1);
    return std::pair(traces, least.busy_ns / 30e3);
  };
  EXPECT_EQ(after(0), std::pair(1, 68.0));
  EXPECT_EQ(after(2), std::pair(3, 68.0));
  EXPECT_EQ(after(100), std::pair(5, 105.0)) << "late work is late in every place";
}

TEST(ThreeClocks, ACallTimedAtLessThanItsWorkIsLateWork) {
  const auto found = find_disagreement(
      {.device_ns = 3e6, .wall_ns = 3e6, .calls = 30},
      {.device_ns = 3e6, .wall_ns = 3e6, .span_ns = 3e6, .busy_ns = 3e6, .calls = 30}, 80e3, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "late_work");
  EXPECT_EQ(
      found->message,
      "a call is timed at 80.00 us and keeps the GPU busy for 100.00 us of the 100.00 us that "
      "it takes in a burst");
}

// The eager reference of KernelBench's level1/57, which launches many short kernels.
TEST(ThreeClocks, KernelsThatWaitForTheHostMayTakeLongerThanInACall) {
  const auto is_late = [](double call_us, double busy_us, double span_us) {
    return find_disagreement(
               {.device_ns = 7 * span_us * 1e3, .wall_ns = 7 * span_us * 1e3, .calls = 7},
               {.device_ns = 7 * span_us * 1e3,
                .wall_ns = 7 * span_us * 1e3,
                .span_ns = 7 * span_us * 1e3,
                .busy_ns = 7 * busy_us * 1e3,
                .calls = 7},
               call_us * 1e3, true)
        .has_value();
  };
  EXPECT_FALSE(is_late(466.68, 565.66, 750)) << "the GPU is idle for a quarter of the burst";
  EXPECT_TRUE(is_late(466.68, 565.66, 600)) << "the GPU is busy";
  EXPECT_TRUE(is_late(420, 565.66, 750)) << "more than cold caches explain";
}

TEST(ThreeClocks, ACallMayTakeALittleLessThanInABurst) {
  const auto scored = [](double call_us, double busy_us) {
    const burst_clock burst{.device_ns = 30 * busy_us * 1e3,
                            .wall_ns = 30 * busy_us * 1e3,
                            .span_ns = 30 * busy_us * 1e3,
                            .busy_ns = 30 * busy_us * 1e3,
                            .calls = 30};
    return find_disagreement(burst, burst, call_us * 1e3, true).has_value();
  };
  EXPECT_FALSE(scored(86, 100));
  EXPECT_TRUE(scored(84, 100));
  EXPECT_FALSE(scored(3, 4));
  EXPECT_TRUE(scored(2.5, 4))
      << "short calls have only the resolution of an event as additional room";
}

TEST(ThreeClocks, ProgramsThatTheirHostDelaysDoNotCheat) {
  // In the burst the calls are 9 us apart, because the host takes that long for each. A single call
  // takes 4 us, all of which is work.
  EXPECT_FALSE(find_disagreement(
      {.device_ns = 3e6, .wall_ns = 3e6, .calls = 333},
      {.device_ns = 3e6, .wall_ns = 3e6, .span_ns = 3e6, .busy_ns = 1.3e6, .calls = 333}, 4e3,
      true));
}

TEST(LaunchBoundReference, LeavesTheGpuIdle) {
  // An element-wise kernel of 4 us after 70 us of flushes. Its host takes 12 us.
  EXPECT_FALSE(is_launch_bound(12.0 / 100, 0.6));
  // A recurrent layer of 150 short kernels, each launched in 9 us, after the longest head start.
  // Its last kernel ends when the host does.
  EXPECT_TRUE(is_launch_bound(1350.0 / 1400, 0.3));
  // A reference that reads a result on its host. All of its work is done by then.
  EXPECT_FALSE(is_launch_bound(1350.0 / 1400, 0.98));
}

}  // namespace
}  // namespace hone
