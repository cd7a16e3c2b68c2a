// Tests of `hone bench` through the program: it judges references and documents, writes its tables,
// goes on where it was stopped, and names missing tasks and documents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::Not;

std::string task_text(const std::string& name, const std::string& factor) {
  return "name = \"" + name + "\"\nsummary = \"y = " + factor +
         " x\"\nreference = \"def forward(x: Tensor) -> Tensor: return x * " + factor +
         "\"\n[[input]]\nname = \"x\"\nshape = [\"N\"]\n[[case]]\nsizes = { N = 20000 }\ntimed = "
         "true\n";
}

std::string document(const std::string& expression) {
  return "## Code Implementation\n```python\ndef forward(x: Tensor) -> Tensor:\n    return " +
         expression + "\n```\n";
}

class Bench : public testing::Test {
 protected:
  Bench() {
    write_file(folder_ / "tasks/level1_1_double.toml", task_text("level1_1_double", "2.0"));
    write_file(folder_ / "tasks/more/level2_7_triple.toml", task_text("level2_7_triple", "3.0"));
    write_file(folder_ / "variants/level1_1_double/sum.md", document("x + x"));
    write_file(folder_ / "variants/level2_7_triple.md", document("x * 2.0"));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  outcome_of_program bench(const std::string& out,
                           const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"bench",        path("tasks"), "--variants", path("variants"),
                                      "--references", "--out",       path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return run_hone(words);
  }
  std::string file(const std::string& name) const { return read_file(folder_ / name); }

  temporary_folder folder_;
};

TEST_F(Bench, JudgesReferencesAndDocumentsAndSummarisesThem) {
  const auto run = bench("out");
  ASSERT_EQ(run.code, 0) << run.err;
  std::vector<std::string> judged;
  for (const auto& one : json_lines(file("out/results.jsonl")))
    judged.push_back(std::string(one["task"]) + " " + std::string(one["document"]) + " " +
                     std::string(one["outcome"]));
  EXPECT_THAT(judged,
              testing::UnorderedElementsAre(
                  "level1_1_double reference ok", "level1_1_double sum ok",
                  "level2_7_triple reference ok", "level2_7_triple level2_7_triple wrong_result"));
  EXPECT_THAT(run.err, HasSubstr("[4/4]"));
  EXPECT_THAT(run.out, HasSubstr(" level1: 1 of 1 tasks correct"));
  EXPECT_THAT(run.out, HasSubstr(" all: 2 of 2 tasks correct"));
  EXPECT_THAT(file("out/results.csv"), HasSubstr("level2_7_triple,level2_7_triple,wrong_result"));
  EXPECT_THAT(file("out/results.md"), HasSubstr("fast_1"));
}

TEST_F(Bench, GoesOnWhereItWasStopped) {
  ASSERT_EQ(bench("out").code, 0);
  const std::string whole = file("out/results.jsonl");
  const std::size_t second = whole.find('\n') + 1;
  // The second line is cut off, as if the program had been killed while it wrote.
  write_file(folder_ / "out/results.jsonl", whole.substr(0, second + 50));
  const auto again = bench("out");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("[3/3]"));
  EXPECT_EQ(json_lines(file("out/results.jsonl")).size(), 4U);
  EXPECT_EQ(file("out/results.jsonl").substr(0, second), whole.substr(0, second));
  EXPECT_EQ(bench("out").err, "") << "nothing is left to judge";
}

TEST_F(Bench, VerifiesWithoutTimingBesideTimedResults) {
  const auto verified = bench("out", {"--verify"});
  ASSERT_EQ(verified.code, 0) << verified.err;
  const auto lines = json_lines(file("out/results.jsonl"));
  ASSERT_EQ(lines.size(), 4U);
  for (const auto& one : lines) {
    const bool is_wrong = one["document"] == "level2_7_triple";
    EXPECT_EQ(one["outcome"], is_wrong ? "wrong_result" : "ok");
    EXPECT_TRUE(one["speedup"].is_null()) << one;
    EXPECT_TRUE(one["measurements"].empty()) << one;
  }
  EXPECT_THAT(verified.out, HasSubstr(" all: 2 of 2 tasks correct\n"));
  EXPECT_THAT(file("out/results.md"), Not(HasSubstr("fast_1 |")));
  EXPECT_EQ(bench("out", {"--verify"}).err, "") << "nothing is left to verify";

  // Timing the same documents into the same folder judges them all.
  const auto timed = bench("out");
  ASSERT_EQ(timed.code, 0) << timed.err;
  EXPECT_THAT(timed.err, HasSubstr("[4/4]"));
  EXPECT_EQ(json_lines(file("out/results.jsonl")).size(), 8U);
  EXPECT_THAT(file("out/results.md"), HasSubstr("fast_1 |"));
}

TEST_F(Bench, NamesWhatIsMissing) {
  write_file(folder_ / "variants/no_such_task.md", document("x"));
  const auto unknown = bench("out");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("has documents for 'no_such_task', which is none of the tasks"));
  const auto nothing = run_hone({"bench", path("tasks"), "--out", path("out")});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("there is no document to judge"));
}

}  // namespace
}  // namespace hone
