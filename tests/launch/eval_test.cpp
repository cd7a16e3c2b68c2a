// Tests of `hone eval` through the program: every document, also of a sweep, becomes one line, and
// the exit code is 0 only if all are ok.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "process/file_lock.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr const char* scale_task = R"(
name = "scale"
summary = "y = 2 x"
reference = "def forward(x: Tensor) -> Tensor: return x * 2.0"
[[input]]
name = "x"
shape = ["N"]
[[case]]
sizes = { N = 20000 }
timed = true
)";
constexpr const char* right =
    "## Code Implementation\n```python\ndef forward(x: Tensor) -> Tensor:\n    return x + x\n```\n";
constexpr const char* sweep =
    "sweep: FACTOR = 2.0 3.0\n## Code Implementation\n```python\ndef forward(x: Tensor) -> "
    "Tensor:\n    return x * ${FACTOR}\n```\n";

class Eval : public testing::Test {
 protected:
  Eval() {
    write_file(folder_ / "scale.toml", scale_task);
    write_file(folder_ / "right.md", right);
    write_file(folder_ / "sweep.md", sweep);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  outcome_of_program eval(std::vector<std::string> more) const {
    more.insert(more.begin(), {"eval", path("scale.toml")});
    return run_hone(more);
  }

  temporary_folder folder_;
};

TEST_F(Eval, JudgesDocumentsOfSeveralTasks) {
  write_file(folder_ / "tasks/double.toml",
             std::string("name = \"double\"\n") + std::string(scale_task).substr(16));
  write_file(folder_ / "tasks/scale.toml", scale_task);
  write_file(folder_ / "documents/scale/first.md", right);
  write_file(folder_ / "documents/double.md", right);
  write_file(folder_ / "documents/other.md", right);
  const auto judged = run_hone({"eval", path("tasks"), path("documents/scale/first.md"),
                                path("documents/double.md"), "--json"});
  EXPECT_EQ(judged.code, 0) << judged.err;
  std::vector<std::string> tasks;
  for (const auto& one : json_lines(judged.out)) tasks.push_back(one["task"]);
  EXPECT_THAT(tasks, testing::ElementsAre("scale", "double"));
  EXPECT_THAT(run_hone({"eval", path("tasks"), path("documents/other.md")}).err,
              HasSubstr("named after a task"));
}

TEST_F(Eval, JudgesEveryDocumentOfASweep) {
  const auto judged = eval({path("right.md"), path("sweep.md"), "--json"});
  EXPECT_EQ(judged.code, 1) << judged.err;
  std::vector<std::pair<std::string, std::string>> outcomes;
  for (const auto& one : json_lines(judged.out))
    outcomes.emplace_back(one["document"], one["outcome"]);
  EXPECT_THAT(outcomes,
              testing::ElementsAre(std::pair(path("right.md"), "ok"),
                                   std::pair(path("sweep.md") + " FACTOR=2.0", "ok"),
                                   std::pair(path("sweep.md") + " FACTOR=3.0", "wrong_result")));
}

TEST_F(Eval, ItsSeedRepeatsTheVerification) {
  const auto first = json_lines(eval({path("right.md"), "--json"}).out);
  ASSERT_EQ(first.size(), 1U);
  const auto seed = first[0]["seed"].get<std::string>();
  EXPECT_EQ(first[0]["verification"]["seed"], seed);
  const auto again = json_lines(eval({path("right.md"), "--json", "--seed", seed}).out);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0]["verification"]["seed"], seed);
}

TEST_F(Eval, ExitsWithZeroIfAllDocumentsAreOk) {
  const auto judged = eval({path("right.md")});
  EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("right.md: ok"));
}

TEST_F(Eval, RefusesAnEndlessSweepBeforeItJudgesAnything) {
  write_file(folder_ / "endless.md", "sweep: " + std::string(200000, 'A') + "\n" + right);
  const auto refused = eval({path("endless.md")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("endless.md:1: sweep: has more than"));
}

TEST_F(Eval, NamesAMissingDocumentOrDevice) {
  const auto missing = eval({path("nothing.md")});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("nothing.md"));
  const auto device = eval({path("right.md"), "--device", "abacus"});
  EXPECT_EQ(device.code, 2);
  EXPECT_THAT(device.err, HasSubstr("abacus"));
}

// Takes the locks of all processor cores but one, as a live run on a small machine does.
class taken_cores {
 public:
  taken_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0, left = CPU_COUNT(&allowed); core < CPU_SETSIZE && left > 1; ++core) {
      if (!CPU_ISSET(core, &allowed)) continue;
      locks_.push_back(lock_file("/tmp/hone-core-" + std::to_string(core) + ".lock"));
      --left;
    }
  }
  void release() { locks_.clear(); }

 private:
  std::vector<unique_fd> locks_;
};

TEST_F(Eval, SaysHowToJudgeWhileOthersUseTheCores) {
  taken_cores taken;
  const auto refused = eval({path("right.md")});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("--share-cores"));
  EXPECT_THAT(refused.err, HasSubstr("--wait"));
  const auto bench =
      run_hone({"bench", path("scale.toml"), "--references", "--out", path("results")});
  EXPECT_NE(bench.code, 0);
  EXPECT_THAT(bench.err, HasSubstr("--wait"));
  // What shares its core with others may end as `unstable`.
  const auto shared = eval({path("right.md"), "--share-cores"});
  EXPECT_NE(shared.code, 2) << shared.err;
  EXPECT_THAT(shared.out, HasSubstr("right.md: "));
}

TEST_F(Eval, WaitsForACoreIfAskedTo) {
  taken_cores taken;
  program waiting({hone_program(), "eval", path("scale.toml"), path("right.md"), "--wait"});
  ASSERT_TRUE(eventually(
      [&] { return waiting.err().find("waiting for a processor core") != std::string::npos; }));
  EXPECT_FALSE(waiting.has_ended());
  taken.release();
  EXPECT_EQ(waiting.wait(), 0) << waiting.err();
  EXPECT_THAT(waiting.out(), HasSubstr("ok"));
}

}  // namespace
}  // namespace hone
