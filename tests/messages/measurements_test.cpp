#include "messages/measurements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/names.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::Pair;

// An evaluation of speed-up 4 whose measurement has two cases, with these times of a graph.
record<schema::Evaluation> evaluation(Outcome outcome, double first_graph_us,
                                      double second_graph_us) {
  record_builder<schema::Evaluation> made;
  made->setOutcome(outcome);
  made->setScore(4);
  auto measurement = made->initMeasurements(1)[0];
  measurement.setOutcome(outcome);
  measurement.setScore(4);
  auto cases = measurement.initCases(2);
  for (unsigned i = 0; i < 2; ++i) {
    cases[i].setReferenceUs(100);
    cases[i].setCandidateUs(25);
    auto baselines = cases[i].initBaselines(2);
    baselines[0].setName("eager");
    baselines[0].setUs(100);
    baselines[1].setName("graph");
    baselines[1].setUs(i == 0 ? first_graph_us : second_graph_us);
  }
  return made.finish();
}

TEST(SpeedupsOverBaselines, AreTheScoreLessTheBaselinesOwnSpeedUp) {
  // The graph is sqrt(100 / 50 * 100 / 12.5) = 4 times as fast as the eager reference.
  EXPECT_THAT(speedups_over_baselines(*evaluation(Outcome::OK, 50, 12.5)),
              ElementsAre(Pair("eager", DoubleEq(4)), Pair("graph", DoubleEq(1))));
}

TEST(SpeedupsOverBaselines, LeaveOutABaselineThatOneCaseLacks) {
  EXPECT_THAT(speedups_over_baselines(*evaluation(Outcome::OK, 50, 0)),
              ElementsAre(Pair("eager", DoubleEq(4))));
}

TEST(SpeedupsOverBaselines, AreNoneUnlessTheEvaluationIsOk) {
  EXPECT_TRUE(speedups_over_baselines(*evaluation(Outcome::UNSTABLE, 50, 50)).empty());
}

}  // namespace
}  // namespace hone
