// Tests that an honest variant is never refused, with documents of the starter corpus and of
// tests/evaluation/honest.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/honest_set.hpp"
#include "tests/support/judging_bench.hpp"

namespace hone {
namespace {

using testing_support::judging_bench;
using testing_support::source_folder;

std::string document(const std::string& python) {
  return "## Code Implementation\n```python\n" + python + "```\n";
}

record<schema::Evaluation> judge(const std::string& text, const task& t) {
  return judging_bench::instance().judge().evaluate(text, t);
}

std::string describe(const schema::Evaluation::Reader& evaluation) {
  return std::string(name_of(evaluation.getOutcome())) + " " +
         std::string(view(evaluation.getKind())) + ": " +
         std::string(view(evaluation.getMessage()));
}

void expect_none_refused(const testing_support::honest_set& set) {
  for (const corpus_document& each : set.documents) {
    const auto evaluation =
        judging_bench::instance().judge().evaluate_until_stable(each.text, set.tasks.at(each.task));
    const bool excused =
        judging_bench::instance().shares_cores()
            ? evaluation->getOutcome() == Outcome::UNSTABLE
            : judging_bench::times_mean_nothing && view(evaluation->getKind()) == "late_work";
    EXPECT_TRUE(evaluation->getOutcome() == Outcome::OK || excused)
        << each.task << "/" << each.name << " ended as " << describe(*evaluation);
  }
}

TEST(HonestSet, IsNeverRefused) {
  // Takes one document of every eighth file: about twenty, which take a minute to judge.
  // benchmarks/honest.cpp judges all documents, many times.
  const auto set = testing_support::load_honest_set(source_folder() / "configs", 1, 8);
  EXPECT_GE(set.documents.size(), 20U);
  EXPECT_GE(set.tasks.size(), 10U);
  expect_none_refused(set);
}

TEST(HonestSet, OfOtherAlgorithmsIsNeverRefused) {
  const auto set = testing_support::load_other_algorithms(source_folder() / "configs/tasks");
  EXPECT_GE(set.documents.size(), 15U);
  expect_none_refused(set);
}

const char* const scale_task = R"(
name = "scale"
summary = "y = 2 x + 1"
distributions = ["declared"]
reference = '''
def forward(x: Tensor) -> Tensor:
    return x * 2.0 + 1.0
'''
[tolerance]
float32 = { rtol = 0.02, atol = 0.02 }
[[input]]
name = "x"
shape = ["N", "N"]
[[case]]
sizes = { N = 96 }
timed = true
)";

// How fast LibTorch computes lgamma of numbers between 1 and 2 depends, on some processors, on what
// its process has computed before.
TEST(HonestProgram, OfTheReferenceItselfIsNoFasterWhateverItsProcessHasComputed) {
  const task t = load_task(std::filesystem::path(HONE_SOURCE_DIR) /
                           "tests/evaluation/exploits/tasks/lgamma12.toml");
  const auto evaluation =
      judging_bench::instance().judge().evaluate_until_stable(document(t.reference), t);
  if (judging_bench::instance().shares_cores() || judging_bench::times_mean_nothing)
    GTEST_SKIP() << "times mean nothing here";
  EXPECT_EQ(evaluation->getOutcome(), Outcome::OK) << describe(*evaluation);
  EXPECT_NEAR(evaluation->getScore(), 1, 0.1);
}

// Runs with noise keep a dozen tensors of the size of the largest one. Without them, a program that
// adds up in another order would be wrong.
TEST(HonestProgram, MayRoundDifferentlyWhereTensorsAreLarge) {
  const std::string text = R"(
name = "large_product"
summary = "row sums of the hyperbolic tangents of a product"
distributions = ["declared"]
reference = '''
def forward(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(torch.matmul(x, w)).sum(1)
'''
[[input]]
name = "x"
shape = ["N", 16]
[[parameter]]
name = "w"
shape = [16, 16]
[[case]]
sizes = { N = 2000000 }
timed = true
)";
  const task_report report = judging_bench::instance().device_under_test().check_task(
      parse_task(text, "large_product.toml"));
  ASSERT_FALSE(report.failure) << report.failure->message;
  ASSERT_EQ(report.cases.size(), 1U);
  EXPECT_EQ(report.cases[0].find("not possible"), std::string::npos) << report.cases[0];
}

TEST(HonestProgram, MayReuseMemoryOfASmallerTensor) {
  // The bool's block of 64 bytes is reused for floats, which is no out-of-bounds write.
  const auto evaluation =
      judge(document("def forward(x: Tensor) -> Tensor:\n    if bool(x[0, 0] == 12345.0):\n        "
                     "return x\n    one = torch.ones([7])\n    return x * 2.0 + one[:1]\n"),
            parse_task(scale_task, "scale.toml"));
  EXPECT_NE(evaluation->getOutcome(), Outcome::CHEATING) << describe(*evaluation);
}

TEST(HonestProgram, MayMultiplyInLowerPrecisionWithinTheTolerance) {
  // oneDNN allocates its workspace with raw_allocate().
  for (const char* type : {"bfloat16", "float16"}) {
    const auto evaluation = judge(
        document("def forward(x: Tensor) -> Tensor:\n    i = torch.eye(x.size(0), dtype=torch." +
                 std::string(type) + ")\n    return torch.matmul(x.to(torch." + type +
                 "), i).to(torch.float32) * 2.0 + 1.0\n"),
        parse_task(scale_task, "scale.toml"));
    EXPECT_NE(evaluation->getOutcome(), Outcome::CRASH) << type << ": " << describe(*evaluation);
  }
}

}  // namespace
}  // namespace hone
