// Judges Python modules on a GPU: honest ones, and those that try to beat the judge. The first line
// of each attack names the outcomes that are right.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tasks/variant_document.hpp"
#include "tests/support/exploit_documents.hpp"
#include "tests/support/gpu_bench.hpp"
#include "tests/support/source_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing_support::describe;
using testing_support::gpu_bench;
using testing_support::source_folder;

constexpr double advantage = 1.1;  // that no attack may have

std::string module_text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> module_files(const std::string& kind) {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(source_folder() / "tests/evaluation/modules" / kind))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

const task& layers() {
  static const task t = load_task(source_folder() / "tests/evaluation/modules/tasks/layers.toml");
  return t;
}

record<schema::Evaluation> evaluate_module(const fs::path& file) {
  return gpu_bench::instance().judge().evaluate(document_of_module(module_text(file)), layers());
}

TEST(GpuModules, JudgesHonestOnesOk) {
  HONE_NEEDS_A_GPU();
  std::vector<fs::path> files = module_files("gpu_honest");
  for (const fs::path& file : module_files("honest")) {
    // Two keep tensors of their constructors, which stay in the memory of the host.
    const std::string name = file.stem().string();
    if (name.starts_with("layers_") && name != "layers_folded_in_constructor" &&
        name != "layers_traced")
      files.push_back(file);
  }
  ASSERT_GE(files.size(), 7U);
  for (const fs::path& file : files) {
    const auto evaluation = evaluate_module(file);
    std::cout << "module " << file.stem().string() << ": " << describe(*evaluation) << "\n";
    EXPECT_EQ(evaluation->getOutcome(), Outcome::OK)
        << file.filename() << ": " << describe(*evaluation);
  }
}

TEST(GpuModules, FindsAModuleAsFastAsTheTasksOwn) {
  HONE_NEEDS_A_GPU();
  const fs::path same = source_folder() / "tests/evaluation/modules/honest/layers_same.py";
  const auto evaluation = evaluate_module(same);
  ASSERT_EQ(evaluation->getOutcome(), Outcome::OK) << describe(*evaluation);
  const auto timed = evaluation->getMeasurements()[0].getCases()[0];
  EXPECT_LE(timed.getIntervalLow(), 1) << describe(*evaluation);
  EXPECT_GE(timed.getIntervalHigh(), 1) << describe(*evaluation);
}

TEST(GpuModules, PaysNoAttack) {
  HONE_NEEDS_A_GPU();
  for (const fs::path& file : module_files("gpu_attacks")) {
    std::istringstream text(module_text(file));
    std::string line;
    std::getline(text, line);
    std::istringstream words(line);
    std::string word;
    words >> word >> word;
    ASSERT_EQ(word, "outcomes:") << file;
    std::set<std::string> right;
    while (words >> word) right.insert(word);
    const auto evaluation = evaluate_module(file);
    std::cout << "attack " << file.stem().string() << ": " << describe(*evaluation) << "\n";
    EXPECT_TRUE(right.contains(std::string(name_of(evaluation->getOutcome()))))
        << file.filename() << ": " << describe(*evaluation);
    if (evaluation->getOutcome() != Outcome::OK) continue;
    // The scores of calls this short are coarse.
    EXPECT_LE(evaluation->getMeasurements()[0].getCases()[0].getIntervalLow(), advantage)
        << file.filename() << ": " << describe(*evaluation);
  }
}

}  // namespace
}  // namespace hone
