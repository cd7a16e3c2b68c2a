// Tests of `hone task synthesise` through the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tasks/task_file.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

class Synthesis : public testing::Test {
 protected:
  // Makes tasks in a folder and returns them by name.
  std::map<std::string, task> make(const std::string& folder, int count, int seed,
                                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {
        "task",    "synthesise",          "--out",  (folder_ / folder).string(),
        "--count", std::to_string(count), "--seed", std::to_string(seed)};
    command.insert(command.end(), more.begin(), more.end());
    const auto ended = run_hone(command);
    EXPECT_EQ(ended.code, 0) << ended.err;
    report_ = ended.out;
    std::map<std::string, task> tasks;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / folder)) {
      if (entry.path().extension() != ".toml") continue;
      task t = load_task(entry.path());
      tasks.emplace(t.name, std::move(t));
    }
    return tasks;
  }
  static std::set<std::string> references_of(const std::map<std::string, task>& tasks) {
    std::set<std::string> all;
    for (const auto& [name, t] : tasks) all.insert(t.reference);
    return all;
  }

  temporary_folder folder_;
  std::string report_;
};

TEST_F(Synthesis, MakesDistinctTasksWithATimedCaseAndTwoOddOnes) {
  const auto tasks = make("tasks", 8, 5);
  ASSERT_EQ(tasks.size(), 8U);
  EXPECT_EQ(references_of(tasks).size(), 8U);
  std::size_t operators = 0;
  for (const auto& [name, t] : tasks) {
    ASSERT_EQ(t.cases.size(), 3U) << name;
    EXPECT_TRUE(t.cases[0].timed && !t.cases[1].timed && !t.cases[2].timed) << name;
    EXPECT_FALSE(t.summary.empty());
    EXPECT_FALSE(t.distributions.empty());
    for (std::size_t at = 0; (at = t.reference.find("torch.", at)) != std::string::npos; ++at)
      ++operators;
  }
  EXPECT_GT(operators, 16U);
  EXPECT_THAT(report_, HasSubstr("8 tasks of "));
}

TEST_F(Synthesis, OfOneSeedIsTheSameWithAnyNumberOfWorkers) {
  const auto one = make("one", 3, 5, {"--workers", "1"});
  const auto two = make("two", 3, 5, {"--workers", "2"});
  const auto other = make("other", 3, 6);
  ASSERT_EQ(one.size(), 3U);
  for (const auto& [name, t] : one) EXPECT_EQ(two.at(name).text, t.text);
  EXPECT_NE(references_of(one), references_of(other));
}

TEST_F(Synthesis, KeepsAwayFromGivenTasks) {
  const auto given = make("given", 5, 5);
  const std::string folder = (folder_ / "given").string();
  const auto away = make("away", 5, 5, {"--unlike", folder, "--bound", "0.6"});
  for (const std::string& reference : references_of(away))
    EXPECT_FALSE(references_of(given).contains(reference));
  EXPECT_THAT(report_, HasSubstr("too close to a given task"));
  EXPECT_THAT(report_, HasSubstr("Similarity to the nearest given task, bound 0.60"));
}

TEST_F(Synthesis, WritesTasksAsImportsDo) {
  for (const auto& [name, t] : make("tasks", 4, 5, {"--like-imports"})) {
    EXPECT_THAT(t.reference, testing::Not(HasSubstr("t0 = "))) << name;
    EXPECT_EQ(t.inputs.front().shape.front(), dimension("N")) << "sizes are named as by imports";
  }
}

TEST_F(Synthesis, MakesTasksOfOtherTypesAndPrecisions) {
  for (const auto& [name, t] :
       make("tasks", 2, 7, {"--dtype", "bfloat16", "--precision", "relaxed"})) {
    EXPECT_TRUE(t.relaxed);
    for (const tensor_spec& spec : t.inputs)
      EXPECT_TRUE(spec.type == dtype::bfloat16 || spec.type == dtype::int64) << name;
  }
}

}  // namespace
}  // namespace hone
