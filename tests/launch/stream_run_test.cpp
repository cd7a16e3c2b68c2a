// Tests of runs that learn from a stream of synthesised tasks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/json_lines.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using json = nlohmann::json;

// A policy of a million weights, which makes 20 updates in ten steps. Every task of the folder is
// held out.
class StreamRun : public small_run_test {
 protected:
  static std::vector<std::string> settings(std::vector<std::string> more = {}) {
    const std::string configs = std::string(HONE_SOURCE_DIR) + "/configs/";
    std::vector<std::string> all;
    for (const std::string& one :
         {std::string("policy.kind=\"model\""), "policy.folder=\"" + tiny.string() + "\"",
          std::string("policy.random_weights=true"),
          "prompt.template=\"" + configs + "prompts/reference.txt\"",
          std::string("tasks.held_out_count=1000"), std::string("stream.workers=2"),
          std::string("stream.judge_one_in=4"), std::string("sft.updates=20"),
          std::string("sft.updates_per_step=2"), std::string("sft.batch=2"),
          std::string("self_supervised.steps=0"), std::string("contrastive.steps=0"),
          std::string("generation.max_new_tokens=8"), std::string("comparison.held_out_samples=1")})
      all.insert(all.end(), {"--set", one});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // Returns the metrics of supervised training by step. A step may have been repeated.
  std::map<std::uint64_t, json> metrics() const {
    std::map<std::uint64_t, json> found;
    for (const json& line : json_lines(read_file(run_folder() / "metrics.jsonl"))) {
      if (line.contains("loss")) found[line["step"]] = line;
    }
    return found;
  }
};

TEST_F(StreamRun, LearnsFromItAloneAndResumesAsIfItHadNotBeenKilled) {
  const auto whole = run(settings());
  ASSERT_EQ(whole.code, 0) << whole.err;
  const json report = json::parse(read_file(run_folder() / "report.json"));
  ASSERT_EQ(report["held_out"].size(), 1U);
  EXPECT_EQ(report["held_out"][0]["tasks"].size(), 2U);
  EXPECT_GT(report["judged"].get<int>(), 0) << "documents of the stream are judged";
  const std::map<std::uint64_t, json> expected = metrics();
  ASSERT_EQ(expected.size(), 10U);

  std::filesystem::remove_all(run_folder());
  program killed(command(settings()));
  constexpr std::chrono::seconds limit(100);  // three processes load torch first
  ASSERT_TRUE(wait_for_versions(4, limit)) << killed.out() << killed.err();
  killed.send(SIGKILL);
  killed.wait();
  const auto resumed = run(settings({"--resume"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const std::map<std::uint64_t, json> found = metrics();
  EXPECT_TRUE(found.contains(10));
  // The line of a step that was committed just before the end may be missing.
  EXPECT_GE(found.size(), 9U);
  for (const auto& [step, numbers] : found) {
    for (const char* name : {"loss", "rate", "tokens"})
      EXPECT_EQ(numbers.at(name), expected.at(step).at(name)) << name << " of step " << step;
  }
}

TEST_F(StreamRun, NeedsATaskToLearnFromInLaterStages) {
  const auto refused = run(settings({"--set", "contrastive.steps=1"}));
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, testing::HasSubstr("all tasks are held out"));
}

}  // namespace
}  // namespace hone
