#include "launch/bench/bench_results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "messages/record.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing_support::read_file;

const bench_document reference{"reference", "", "id"};

bench_plan plan_of_one() {
  bench_plan plan;
  plan.tasks.emplace_back();
  plan.tasks[0].of.name = "t";
  plan.tasks[0].group = "all";
  plan.tasks[0].documents = {reference};
  return plan;
}

// An evaluation of two cases, of which both lack a baseline.
record<schema::Evaluation> without_graphs() {
  record_builder<schema::Evaluation> made;
  made->setOutcome(schema::Outcome::OK);
  made->setScore(2);
  auto measurement = made->initMeasurements(1)[0];
  measurement.setOutcome(schema::Outcome::OK);
  measurement.setScore(2);
  auto cases = measurement.initCases(2);
  for (unsigned i = 0; i < cases.size(); ++i) {
    auto missing = cases[i].initMissingBaselines(1)[0];
    missing.setName("graph");
    missing.setWhy("reason " + std::to_string(i));
  }
  return made.finish();
}

class BenchResults : public testing::Test {
 protected:
  BenchResults() {
    bench_results(folder_.path())
        .add(bench_key("gpu", reference, evaluation_depth::full), plan_.tasks[0], reference,
             *without_graphs());
  }
  // Returns the results of the file, read anew.
  std::vector<bench_result> read_again() const {
    return bench_results(folder_.path()).of(plan_, {"gpu"}, evaluation_depth::full);
  }

  testing_support::temporary_folder folder_;
  bench_plan plan_ = plan_of_one();
};

TEST_F(BenchResults, KeepTheFirstReasonForAMissingBaseline) {
  const auto again = read_again();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_THAT(again[0].missing_baselines, ElementsAre(Pair("graph", "reason 0")));
}

TEST_F(BenchResults, KeepTimedAndVerifiedResultsOfADocumentApart) {
  bench_results results(folder_.path());
  const std::string verified = bench_key("gpu", reference, evaluation_depth::verdict);
  EXPECT_FALSE(results.contains(verified));
  record_builder<schema::Evaluation> wrong;
  wrong->setOutcome(schema::Outcome::WRONG_RESULT);
  results.add(verified, plan_.tasks[0], reference, *wrong.finish());
  EXPECT_EQ(results.of(plan_, {"gpu"}, evaluation_depth::full).at(0).outcome, "ok");
  EXPECT_EQ(results.of(plan_, {"gpu"}, evaluation_depth::verdict).at(0).outcome, "wrong_result");
}

TEST_F(BenchResults, ReadsLinesOfVersionsThatRecordedNoReasons) {
  std::string lines = read_file(folder_ / "results.jsonl");
  const std::string field = R"(,"missing_baselines":{"graph":"reason 0"})";
  ASSERT_NE(lines.rfind(field), std::string::npos) << lines;
  lines.erase(lines.rfind(field), field.size());
  std::ofstream(folder_ / "results.jsonl") << lines;
  const auto again = read_again();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_THAT(again[0].missing_baselines, IsEmpty());
}

}  // namespace
}  // namespace hone
