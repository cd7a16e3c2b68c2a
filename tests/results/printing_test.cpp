#include "results/printing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/measurements.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Shortened, ShowsTheFirstOfManyLinesAndCountsTheOthers) {
  const std::vector<std::string> five(5, "a task: its prompt is long");
  EXPECT_EQ(shortened(five), five);
  std::vector<std::string> many;
  for (int i = 0; i < 400; ++i) many.push_back("task " + std::to_string(i) + ": too long");
  EXPECT_THAT(shortened(many),
              testing::ElementsAre("task 0: too long", "task 1: too long", "task 2: too long",
                                   "the same holds for 397 more tasks"));
}

// Returns an evaluation as a GPU makes it: 1.6 ms against 2 ms, 4 MB and 3.2 GFLOP.
record<schema::Evaluation> evaluation(const char* throttled = "") {
  record_builder<schema::Evaluation> made;
  made->setOutcome(schema::Outcome::OK);
  made->setScore(1.25);
  auto m = made->initMeasurements(1)[0];
  m.setScore(1.25);
  m.setScoreRaw(1.2534);
  m.setIntervalLow(1.25);
  m.setIntervalHigh(1.26);
  auto c = m.initCases(1)[0];
  c.setSizes("N=64");
  c.setReferenceUs(2000);
  c.setCandidateUs(1600);
  c.setBytes(4'000'000);
  c.setFlops(3'200'000'000);
  c.setUnseenUs(0.5);
  c.setThrottled(throttled);
  auto baselines = c.initBaselines(2);
  baselines[0].setName("eager");
  baselines[0].setUs(2000);
  baselines[1].setName("graph");
  baselines[1].setUs(1800);
  auto missing = c.initMissingBaselines(1)[0];
  missing.setName("inductor");
  missing.setWhy("not compiled for N=64");
  auto k = c.initKernels(1)[0];
  k.setName("rows");
  k.setBlocks(8192);
  k.setThreads(256);
  k.setRegisters(40);
  k.setStaticSharedBytes(1024);
  k.setDynamicSharedBytes(512);
  k.setLocalBytes(64);
  k.setSpilledBytes(8);
  k.setOccupancy(0.75);
  return made.finish();
}

TEST(EvaluationReport, ShowsTimesBaselinesAndKernels) {
  EXPECT_EQ(
      describe(*evaluation()),
      "ok  1.25x  [1.250, 1.260]  1600.0 us against 2000.0 us\n"
      "    N=64: 1.12x against graph (1800.0 us), no inductor (not compiled for N=64), 2 GB/s "
      "of inputs and outputs, 2.0 TFLOP/s of products\n"
      "      rows: 8192 blocks of 256, 40 registers, 1536 bytes shared, 64 local, 8 spilled, "
      "occupancy 75.0 %");
}

TEST(EvaluationReport, ShowsTheMeasurementNearestToTheScore) {
  record_builder<schema::Evaluation> made;
  made->setOutcome(schema::Outcome::OK);
  made->setScore(1.25);
  auto all = made->initMeasurements(4);
  for (const auto& [i, score] :
       std::vector<std::pair<unsigned, double>>{{0, 1.1}, {1, 1.25}, {2, 1.4}}) {
    all[i].setOutcome(schema::Outcome::OK);
    all[i].setScore(score);
    auto c = all[i].initCases(1)[0];
    c.setReferenceUs(100 * score);
    c.setCandidateUs(100);
  }
  all[3].setOutcome(schema::Outcome::UNSTABLE);
  const auto e = made.finish();
  EXPECT_EQ(measurement_of_score(*e).getScore(), 1.25);
  EXPECT_THAT(describe(*e), HasSubstr("100.0 us against 125.0 us"));
  EXPECT_NEAR(to_json(*e, "t")["reference_us"].get<double>(), 125, 1e-9);
}

TEST(EvaluationReport, ShowsNoScoreUnlessTheOutcomeIsOk) {
  record_builder<schema::Evaluation> made;
  made->setOutcome(schema::Outcome::UNSTABLE);
  auto m = made->initMeasurements(1)[0];
  m.setOutcome(schema::Outcome::UNSTABLE);
  auto c = m.initCases(1)[0];
  c.setReferenceUs(80);
  c.setCandidateUs(70);
  EXPECT_EQ(describe(*made.finish()), "unstable  70.0 us against 80.0 us");
}

TEST(EvaluationReport, ShowsWhyTheGpuWasThrottled) {
  EXPECT_THAT(describe(*evaluation("hardware thermal")),
              HasSubstr("slowed down by hardware thermal"));
  EXPECT_THAT(describe(*evaluation()), Not(HasSubstr("slowed down")));
}

TEST(EvaluationReport, JsonHasAllFields) {
  const auto printed = to_json(*evaluation("power brake"), "softmax");
  EXPECT_EQ(printed["task"], "softmax");
  EXPECT_EQ(printed["outcome"], "ok");
  EXPECT_EQ(printed["speedup"], 1.25);
  const auto& timed = printed["measurements"][0]["cases"][0];
  EXPECT_EQ(timed["reference_us"], 2000);
  EXPECT_EQ(timed["baselines_us"]["graph"], 1800);
  EXPECT_EQ(timed["missing_baselines"]["inductor"], "not compiled for N=64");
  EXPECT_EQ(timed["bytes"], 4'000'000);
  EXPECT_EQ(timed["flops"], 3'200'000'000);
  EXPECT_EQ(timed["unseen_us"], 0.5);
  EXPECT_EQ(timed["throttled"], "power brake");
  const auto& kernel = timed["kernels"][0];
  EXPECT_EQ(kernel["registers"], 40);
  EXPECT_EQ(kernel["static_shared_bytes"], 1024);
  EXPECT_EQ(kernel["dynamic_shared_bytes"], 512);
  EXPECT_EQ(kernel["local_bytes"], 64);
  EXPECT_EQ(kernel["spilled_bytes"], 8);
  EXPECT_EQ(kernel["occupancy"], 0.75);
}

TEST(EvaluationReport, AFailureHasItsMessageAndNoTimes) {
  record_builder<schema::Evaluation> made;
  made->setOutcome(schema::Outcome::CHEATING);
  made->setKind("late_work");
  made->setMessage("the host waits");
  const auto failed = made.finish();
  EXPECT_EQ(describe(*failed), "cheating (late_work)\n    the host waits");
  EXPECT_TRUE(to_json(*failed, "t")["speedup"].is_null());
}

}  // namespace
}  // namespace hone
