// Judges the Python modules under tests/evaluation/modules with the real judge: honest ones, and
// those that try to beat it. The first line of each attack names the outcomes that are right. One
// that is `ok`, because it does its work, must not score more than its honest twin.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "tasks/variant_document.hpp"
#include "tests/support/judging_bench.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::judging_bench;

const fs::path folder = fs::path(HONE_SOURCE_DIR) / "tests/evaluation/modules";
constexpr double advantage = 1.1;  // that no attack may have

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> modules_in(const std::string& kind) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder / kind)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// A module whose name begins with that of a task is for this task, any other for `layers`.
task task_for(const fs::path& module) {
  const std::string file = module.filename().string();
  for (const std::string name : {"rows", "scaled"}) {
    if (file.starts_with(name + "_")) return load_task(folder / "tasks" / (name + ".toml"));
  }
  return load_task(folder / "tasks/layers.toml");
}

record<schema::Evaluation> evaluate(const std::string& module, const task& t) {
  return judging_bench::instance().judge().evaluate_below(advantage, document_of_module(module), t);
}

record<schema::Evaluation> verify(const std::string& module, const task& t) {
  return judging_bench::instance().judge().verify(document_of_module(module), t);
}

std::string describe(const schema::Evaluation::Reader& e) {
  std::ostringstream text;
  text << name_of(e.getOutcome()) << " " << e.getScore() << " " << e.getMessage().cStr();
  return text.str();
}

TEST(Modules, JudgesHonestOnesOk) {
  for (const fs::path& file : modules_in("honest")) {
    const auto evaluation = evaluate(text_of(file), task_for(file));
    const bool is_slow_machine =
        judging_bench::times_mean_nothing && evaluation->getOutcome() == Outcome::TIMEOUT;
    EXPECT_TRUE(evaluation->getOutcome() == Outcome::OK || is_slow_machine)
        << file.filename() << ": " << describe(*evaluation);
  }
}

TEST(Modules, FindsAModuleAsFastAsTheTasksOwn) {
  if (judging_bench::times_mean_nothing) GTEST_SKIP() << "times mean nothing here";
  const fs::path same = folder / "honest/layers_same.py";
  const auto evaluation = judging_bench::instance().judge().evaluate_until_stable(
      document_of_module(text_of(same)), task_for(same));
  ASSERT_EQ(evaluation->getOutcome(), Outcome::OK) << describe(*evaluation);
  EXPECT_NEAR(evaluation->getScore(), 1, 0.1);
}

TEST(Modules, PaysNoAttack) {
  for (const fs::path& file : modules_in("attacks")) {
    const std::string text = text_of(file);
    std::istringstream first_line(text.substr(0, text.find('\n')));
    std::string word;
    first_line >> word >> word;
    ASSERT_EQ(word, "outcomes:") << file;
    std::set<std::string> right;
    while (first_line >> word) right.insert(word);
    const auto evaluation = evaluate(text, task_for(file));
    EXPECT_TRUE(right.contains(std::string(name_of(evaluation->getOutcome()))))
        << file.filename() << ": " << describe(*evaluation);
    EXPECT_TRUE(judging_bench::times_mean_nothing || evaluation->getScore() <= advantage)
        << file.filename() << ": " << describe(*evaluation);
    EXPECT_LE(std::string(evaluation->getMessage().cStr()).size(), 4000U) << file.filename();
  }
  for (const char* where : {"/tmp", "/var/tmp", "/dev/shm"})
    EXPECT_FALSE(fs::exists(fs::path(where) / "hone-module-mark")) << where;
}

TEST(Modules, NamesTheLineOfAProblem) {
  const task t = task_for("layers");
  const auto message = [&](const std::string& module, Outcome expected) {
    const auto evaluation = verify(module, t);
    EXPECT_EQ(evaluation->getOutcome(), expected) << module;
    return std::string(evaluation->getMessage().cStr());
  };
  EXPECT_THAT(message("class ModelNew:\n    def\n", Outcome::COMPILE_ERROR),
              HasSubstr("python:2:"));
  EXPECT_THAT(message("import nothing_like_this\nclass ModelNew: pass\n", Outcome::COMPILE_ERROR),
              HasSubstr("python:1: ModuleNotFoundError"));
  EXPECT_THAT(message("class ModelNew:\n"
                      "    def __init__(self, *sizes):\n"
                      "        raise ValueError('no')\n",
                      Outcome::CRASH),
              HasSubstr("python:3: ValueError: no"));
  EXPECT_THAT(message("class ModelNew:\n"
                      "    def __init__(self, *sizes): pass\n"
                      "    def __call__(self, x): return 'text'\n",
                      Outcome::CRASH),
              HasSubstr("forward() returns str"));
}

TEST(Modules, SaysThatItStartsNoCompiler) {
  const auto module = [](const std::string& made) {
    return "import torch\n"
           "from torch.utils.cpp_extension import load_inline\n"
           "class ModelNew(torch.nn.Module):\n"
           "    def __init__(self, *sizes):\n"
           "        super().__init__()\n"
           "        self.made = " +
           made + "\n";
  };
  for (const char* made : {"torch.compile(torch.nn.ReLU())", "load_inline('x', 'int f();')"}) {
    const auto evaluation = verify(module(made), task_for("layers"));
    EXPECT_EQ(evaluation->getOutcome(), Outcome::CRASH) << made;
    EXPECT_THAT(evaluation->getMessage().cStr(), HasSubstr("starts no compiler")) << made;
  }
}

TEST(Modules, RefusesWhatItCannotJudge) {
  const std::string module = text_of(folder / "honest/layers_same.py");
  task unknown = task_for("layers");
  unknown.id = random_id<task_id>();
  unknown.source_language.clear();
  unknown.source_text.clear();
  const auto orphan = verify(module, unknown);
  EXPECT_EQ(orphan->getOutcome(), Outcome::REJECTED);
  EXPECT_THAT(orphan->getMessage().cStr(), HasSubstr("was not imported from a module"));

  variant_document mixed;
  mixed.python = module;
  mixed.cuda = "__global__ void k() {}\n";
  const auto with_block =
      judging_bench::instance().judge().verify(print_variant_document(mixed), task_for("layers"));
  EXPECT_EQ(with_block->getOutcome(), Outcome::REJECTED);
  EXPECT_THAT(with_block->getMessage().cStr(), HasSubstr("no cuda block"));
}

TEST(Modules, JudgesThemOnTasksWithoutAModuleOrParameters) {
  task native = task_for("rows_");
  native.id = random_id<task_id>();
  native.source_language.clear();
  native.source_text.clear();
  const auto evaluation = verify(text_of(folder / "honest/rows_numpy.py"), native);
  EXPECT_EQ(evaluation->getOutcome(), Outcome::OK) << describe(*evaluation);
}

}  // namespace
}  // namespace hone
