// Tests verdicts and scores on a GPU: every honest program of configs/gpu ends as `ok`, and every
// exploit of evaluation.md section 4 is caught or gains nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/exploit_documents.hpp"
#include "tests/support/gpu_bench.hpp"
#include "tests/support/honest_set.hpp"
#include "tests/support/safetensors_text.hpp"
#include "tests/support/source_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing_support::allowed_outcomes;
using testing_support::describe;
using testing_support::exploit;
using testing_support::gpu_bench;
using testing_support::load_exploit;
using testing_support::source_folder;

const fs::path exploits = source_folder() / "tests/evaluation/exploits/gpu";

std::string test_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

// --- honest programs

const testing_support::honest_set& honest() {
  static const testing_support::honest_set set =
      testing_support::load_honest_set(source_folder() / "configs/gpu", 1, 1);
  return set;
}

// Also with algorithms that differ from the references'.
const testing_support::honest_set& of_other_algorithms() {
  static const testing_support::honest_set set =
      testing_support::load_other_algorithms(source_folder() / "configs/gpu/tasks");
  return set;
}

void expect_ok(const testing_support::honest_set& set, std::size_t document) {
  const corpus_document& each = set.documents.at(document);
  const auto evaluation =
      gpu_bench::instance().judge().evaluate(each.text, set.tasks.at(each.task));
  EXPECT_EQ(evaluation->getOutcome(), Outcome::OK)
      << each.task << "/" << each.name << " ended as " << describe(*evaluation);
}

class GpuHonest : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuHonest, IsNeverRefused) {
  HONE_NEEDS_A_GPU();
  expect_ok(honest(), GetParam());
}

class GpuHonestOfOtherAlgorithms : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuHonestOfOtherAlgorithms, IsNeverRefused) {
  HONE_NEEDS_A_GPU();
  expect_ok(of_other_algorithms(), GetParam());
}

std::string name_of_document(const testing_support::honest_set& set, std::size_t document) {
  return test_name(set.documents[document].task + "_" + set.documents[document].name);
}

INSTANTIATE_TEST_SUITE_P(EveryDocument, GpuHonest,
                         testing::Range<std::size_t>(0, honest().documents.size()),
                         [](const auto& each) { return name_of_document(honest(), each.param); });
INSTANTIATE_TEST_SUITE_P(EveryDocument, GpuHonestOfOtherAlgorithms,
                         testing::Range<std::size_t>(0, of_other_algorithms().documents.size()),
                         [](const auto& each) {
                           return name_of_document(of_other_algorithms(), each.param);
                         });

// --- baselines

TEST(GpuBaselines, AreThereOrSayWhyNot) {
  HONE_NEEDS_A_GPU();
  const task reads_its_input = parse_task(R"(name = "t"
summary = "A program that reads its input"
reference = """
def forward(x: Tensor) -> Tensor:
    return x + 1.0 if bool(torch.any(x > 0.0)) else x
"""
[[input]]
name = "x"
shape = ["N"]
[[case]]
sizes = { N = 65536 }
timed = true
)",
                                          "t.toml");
  const auto evaluation = gpu_bench::instance().judge().evaluate(
      "## Code Implementation\n\n```python\ndef forward(x: Tensor) -> Tensor:\n    return "
      "torch.where(torch.any(x > 0.0), x + 1.0, x)\n```\n",
      reads_its_input);
  ASSERT_EQ(evaluation->getOutcome(), Outcome::OK) << describe(*evaluation);
  const auto timed = evaluation->getMeasurements()[0].getCases()[0];
  std::set<std::string> names;
  for (const auto baseline : timed.getBaselines()) {
    EXPECT_GT(baseline.getUs(), 0);
    names.insert(baseline.getName());
  }
  EXPECT_EQ(names, (std::set<std::string>{"default", "eager", "tf32+autotune"}));
  ASSERT_EQ(timed.getMissingBaselines().size(), 1U);
  const auto missing = timed.getMissingBaselines()[0];
  EXPECT_EQ(std::string(missing.getName()), "graph");
  EXPECT_NE(std::string(missing.getWhy()).find("captur"), std::string::npos)
      << missing.getWhy().cStr();
}

// --- runs of references with noise

TEST(GpuNoise, IsAddedToLargeResultsInParts) {
  HONE_NEEDS_A_GPU();
  const task large = parse_task(R"(name = "t"
summary = "Functions whose error has one absolute size"
reference = """
def forward(x: Tensor) -> Tensor:
    return torch.tanh(x) + 1.0 / (1.0 + torch.exp(-x)) + torch.acos(torch.cos(x))
"""
[[input]]
name = "x"
shape = ["N", "M"]
[[case]]
sizes = { N = 1000, M = 65536 }
timed = true
)",
                                "t.toml");
  const auto evaluation = gpu_bench::instance().judge().evaluate(
      "## Code Implementation\n\n```python\ndef forward(x: Tensor) -> Tensor:\n    return "
      "torch.tanh(x) * 1.0001 + 1.0 / (1.0 + torch.exp(-x)) + torch.acos(torch.cos(x))\n```\n",
      large);
  EXPECT_EQ(evaluation->getOutcome(), Outcome::WRONG_RESULT);
  EXPECT_EQ(describe(*evaluation).find("not possible"), std::string::npos) << describe(*evaluation);
}

// --- parameters from data files

// A task whose fixed parameters, three numbers and one, lie in a data file at offsets of 4 and 16
// bytes.
task with_data_file(const std::vector<float>& numbers) {
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), 5 * sizeof(float));
  const std::string file =
      testing_support::safetensors_text({{"c", "F32", {1}, bytes.substr(0, 4)},
                                         {"w", "F32", {3}, bytes.substr(4, 12)},
                                         {"b", "F32", {1}, bytes.substr(16, 4)}});
  return parse_task(R"(name = "t"
summary = "A scale and a shift from a file"
reference = """
def forward(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return x * w[1] + b
"""
[[input]]
name = "x"
shape = ["N"]
[[parameter]]
name = "w"
shape = [3]
data = "numbers.safetensors"
fixed = true
[[parameter]]
name = "b"
shape = [1]
data = "numbers.safetensors"
fixed = true
[[case]]
sizes = { N = 65536 }
timed = true
)",
                    "t.toml", {{"numbers.safetensors", file}});
}

TEST(GpuDataFiles, GiveEachTaskItsOwnNumbersWhileTasksTakeTurns) {
  HONE_NEEDS_A_GPU();
  const std::array tasks = {with_data_file({9, 1, 2, 3, 4}), with_data_file({8, 5, 6, 7, 3})};
  const std::array<std::string, 2> formulas = {"x * 2.0 + 4.0", "x * 6.0 + 3.0"};
  for (const std::size_t t : {0, 1, 0}) {
    for (const std::size_t formula : {0, 1}) {
      const auto evaluation = gpu_bench::instance().judge().evaluate(
          "## Code Implementation\n\n```python\ndef forward(x: Tensor, w: Tensor, b: Tensor) -> "
          "Tensor:\n    return " +
              formulas[formula] + "\n```\n",
          tasks[t]);
      EXPECT_EQ(evaluation->getOutcome(), t == formula ? Outcome::OK : Outcome::WRONG_RESULT)
          << "task " << t << ", " << formulas[formula] << ": " << describe(*evaluation);
    }
  }
}

TEST(GpuHonestSet, HasAtLeastSixtyDocuments) { EXPECT_GE(honest().documents.size(), 60U); }

// --- exploits

TEST(GpuExploits, EveryKindHasDocuments) {
  for (const auto& [kind, outcomes] : allowed_outcomes()) {
    if (kind == "host_escape" || kind == "forged_document")
      continue;  // these do not depend on the device
    EXPECT_FALSE(testing_support::tricks_of(exploits, kind).empty()) << kind;
  }
}

// The largest score of programs with right results and a trick that would make timed calls cheaper
// than a user's calls, or the reference slower. They may pass, but the trick must not pay.
constexpr double nothing_earned = 1.1;

// Returns true for the kinds that may have no effect on a GPU: no work of the candidate is left
// when the reference has its turn, and the clocks are compared with each other. Such exploits end
// as late work, or as right programs that gain nothing.
bool may_be_in_vain(const std::string& kind) {
  return kind == "slow_reference" || kind == "impossible_time";
}

// Returns true if a verdict names an exploit of a kind rightly. Late work of a kind that has no
// effect on a GPU shows as late work, and what late work writes may lie outside of all buffers by
// then.
bool names(const std::string& verdict, const std::string& kind) {
  return verdict == kind || (verdict == "late_work" && may_be_in_vain(kind)) ||
         (verdict == "memory_fault" && kind == "late_work");
}

// Prints a line that scripts/qualify reads.
void print_end(const exploit& e, const schema::Evaluation::Reader& evaluation) {
  std::string line = describe(evaluation);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::cout << "exploit " << e.kind << "/" << e.trick << ": " << line << std::endl;
}

class GpuExploit : public testing::TestWithParam<exploit> {};

TEST_P(GpuExploit, IsCaught) {
  HONE_NEEDS_A_GPU();
  const auto [t, text] = load_exploit(exploits, GetParam());
  const std::string& kind = GetParam().kind;
  const auto evaluation = gpu_bench::instance().judge().evaluate(text, t);
  const bool by_name = evaluation->getOutcome() == Outcome::CHEATING &&
                       names(std::string(view(evaluation->getKind())), kind);
  const bool is_in_vain = may_be_in_vain(kind) && evaluation->getOutcome() == Outcome::OK &&
                          evaluation->getScore() <= nothing_earned;
  EXPECT_TRUE(by_name || is_in_vain ||
              allowed_outcomes().at(kind).contains(evaluation->getOutcome()))
      << describe(*evaluation);
  print_end(GetParam(), *evaluation);
}

INSTANTIATE_TEST_SUITE_P(EveryKind, GpuExploit,
                         testing::ValuesIn(testing_support::all_exploits(exploits)),
                         [](const auto& each) { return each.param.kind + "_" + each.param.trick; });

class GpuPowerless : public testing::TestWithParam<std::string> {};

TEST_P(GpuPowerless, EarnsNothing) {
  HONE_NEEDS_A_GPU();
  const auto [t, text] = load_exploit(exploits, {"powerless", GetParam()});
  const auto evaluation = gpu_bench::instance().judge().evaluate(text, t);
  EXPECT_LE(evaluation->getScore(), nothing_earned) << describe(*evaluation);
  print_end({"powerless", GetParam()}, *evaluation);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuPowerless);
INSTANTIATE_TEST_SUITE_P(EveryTrick, GpuPowerless,
                         testing::ValuesIn(testing_support::tricks_of(exploits, "powerless")),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace hone
