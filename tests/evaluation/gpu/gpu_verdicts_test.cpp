// What a GPU's judge must find, on a GPU: every honest program of configs/gpu is ok, and no exploit of evaluation.md section 4 is.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/gpu_bench.hpp"
#include "tests/support/honest_set.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing_support::gpu_bench;

const fs::path exploits = fs::path(HONE_SOURCE_DIR) / "tests/evaluation/exploits/gpu";

std::string describe(const schema::Evaluation::Reader& evaluation) {
  std::string text(name_of(evaluation.getOutcome()));
  if (evaluation.getKind().size() > 0) text += " (" + std::string(view(evaluation.getKind())) + ")";
  return text + ", score " + std::to_string(evaluation.getScore()) + ": " + std::string(view(evaluation.getMessage()));
}

std::string test_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

// --- honest programs

const testing_support::honest_set& honest() {
  static const testing_support::honest_set set = testing_support::load_honest_set(fs::path(HONE_SOURCE_DIR) / "configs/gpu", 1, 1);
  return set;
}

class GpuHonest : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuHonest, IsNeverRefused) {
  HONE_NEEDS_A_GPU();
  const corpus_document& document = honest().documents.at(GetParam());
  auto evaluation = gpu_bench::instance().judge().evaluate(document.text, honest().tasks.at(document.task));
  EXPECT_EQ(evaluation->getOutcome(), Outcome::OK) << document.task << "/" << document.name << " ended as " << describe(*evaluation);
  RecordProperty("ended_as", describe(*evaluation));
}

INSTANTIATE_TEST_SUITE_P(EveryDocument, GpuHonest, testing::Range<std::size_t>(0, honest().documents.size()),
                         [](const auto& each) { return test_name(honest().documents[each.param].task + "_" + honest().documents[each.param].name); });

TEST(GpuHonestSet, IsLargeEnough) { EXPECT_GE(honest().documents.size(), 60U); }

// --- exploits

// Outcomes that a row allows beside `cheating` with the row's kind.
const std::map<std::string, std::set<Outcome>>& allowed_outcomes() {
  using enum Outcome;
  static const std::map<std::string, std::set<Outcome>> allowed = {
      {"input_mutation", {WRONG_RESULT}},
      {"output_alias", {WRONG_RESULT}},
      {"stale_memory", {WRONG_RESULT}},
      {"replay", {WRONG_RESULT, CRASH}},
      {"constant", {WRONG_RESULT}},
      {"subsampling", {WRONG_RESULT}},
      {"special_case", {WRONG_RESULT}},
      {"low_precision", {WRONG_RESULT}},
      {"memory_fault", {WRONG_RESULT, CRASH, LAUNCH_ERROR}},
      {"memory_scan", {WRONG_RESULT, CRASH}},
      {"persisting_cache", {REJECTED}},
      {"late_work", {WRONG_RESULT, UNSTABLE}},
      {"slow_reference", {UNSTABLE}},
      {"prepare_abuse", {WRONG_RESULT, UNPARSABLE, COMPILE_ERROR, LAUNCH_ERROR}},
      {"exhaustion", {TIMEOUT, CRASH, COMPILE_ERROR, LAUNCH_ERROR}},
      {"impossible_time", {UNSTABLE}},
  };
  return allowed;
}

std::vector<fs::path> documents_of(const std::string& kind) {
  std::vector<fs::path> files;
  if (!fs::exists(exploits / kind)) return files;
  for (const auto& entry : fs::directory_iterator(exploits / kind)) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> all_exploits() {
  std::vector<fs::path> all;
  for (const auto& [kind, outcomes] : allowed_outcomes()) {
    const auto files = documents_of(kind);
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

// The document behind its first line, which names the task.
std::pair<task, std::string> load_exploit(const fs::path& file) {
  std::string text = testing_support::read_file(file);
  const std::size_t end = text.find('\n');
  const std::string name = text.substr(std::string("task: ").size(), end - std::string("task: ").size());
  text.erase(0, end + 1);
  return {load_task(exploits / "tasks" / (name + ".toml")), text};
}

class GpuExploit : public testing::TestWithParam<fs::path> {};

TEST_P(GpuExploit, IsCaught) {
  HONE_NEEDS_A_GPU();
  const auto [t, text] = load_exploit(GetParam());
  const std::string kind = GetParam().parent_path().filename();
  const auto evaluation = gpu_bench::instance().judge().evaluate(text, t);
  const bool by_name = evaluation->getOutcome() == Outcome::CHEATING && view(evaluation->getKind()) == kind;
  EXPECT_TRUE(by_name || allowed_outcomes().at(kind).contains(evaluation->getOutcome())) << describe(*evaluation);
  RecordProperty("ended_as", describe(*evaluation));
}

INSTANTIATE_TEST_SUITE_P(EveryKind, GpuExploit, testing::ValuesIn(all_exploits()), [](const auto& each) { return test_name(each.param.parent_path().filename().string() + "_" + each.param.stem().string()); });

// Right results by tricks that would make a timed call cheaper than a user's: they may pass, and must not pay.
class GpuPowerless : public testing::TestWithParam<fs::path> {};

TEST_P(GpuPowerless, EarnsNothing) {
  HONE_NEEDS_A_GPU();
  const auto [t, text] = load_exploit(GetParam());
  const auto evaluation = gpu_bench::instance().judge().evaluate(text, t);
  EXPECT_LE(evaluation->getScore(), 1.1) << describe(*evaluation);
  RecordProperty("ended_as", describe(*evaluation));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuPowerless);
INSTANTIATE_TEST_SUITE_P(EveryTrick, GpuPowerless, testing::ValuesIn(documents_of("powerless")), [](const auto& each) { return test_name(each.param.stem().string()); });

}  // namespace
}  // namespace hone
