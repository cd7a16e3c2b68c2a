// Tests of runs whose variants are written on nodes that join them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/json_lines.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/safetensors_text.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class DistantGenerators : public small_run_test {
 protected:
  // A node that writes. Its copies lie in a folder of the test.
  program writer(const std::string& name, std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {
        hone_program(), "node",     "--join", (run_folder() / "address").string(),
        "--generators", "cpu",      "--name", name,
        "--cache",      cache(name)};
    all.insert(all.end(), more.begin(), more.end());
    return program(all);
  }
  std::string cache(const std::string& name) const {
    return (folder_ / ("cache-" + name)).string();
  }
};

TEST_F(DistantGenerators, WriteForARunThatHasNone) {
  program p(endless({"--set", "generation.replicas=0"}));
  program first = writer("first", {"--compilers", "0"});
  ASSERT_TRUE(wait_for_versions(3)) << p.out() << first.out() << first.err();
  EXPECT_TRUE(eventually([&] {
    return run_hone({"status", "--connect", address()}).out.find("generator first cpu") !=
           std::string::npos;
  }));
  first.send(SIGKILL);
  first.wait();
  // The draws that the killed node had are given to the second one, and not only in ten minutes.
  program second = writer("second", {"--compilers", "0"});
  EXPECT_TRUE(wait_for_versions(versions() + 3)) << p.out() << second.out() << second.err();
  p.send(SIGKILL);
  p.wait();
  expect_nothing_lost();
}

TEST_F(DistantGenerators, ComeBackToARunThatWasKilledAndResumed) {
  const std::vector<std::string> none = {"--set", "generation.replicas=0"};
  program helper = writer("helper", {"--compilers", "0"});
  for (int life = 0; life < 2; ++life) {
    std::vector<std::string> options = none;
    if (life > 0) options.emplace_back("--resume");
    program p(endless(options));
    ASSERT_TRUE(wait_for_versions(versions() + 3)) << p.out() << helper.out() << helper.err();
    p.send(SIGKILL);
    p.wait();
  }
  expect_nothing_lost();
}

// A policy of a million weights learns two documents, and writes on the node, which also judges:
// the run's first node has neither devices nor compilers nor generators.
class DistantModel : public DistantGenerators {
 protected:
  std::vector<std::string> model(std::vector<std::string> more = {}) const {
    const std::string configs = std::string(HONE_SOURCE_DIR) + "/configs/";
    std::vector<std::string> all;
    for (const std::string& one :
         {std::string("policy.kind=\"model\""),
          "prompt.template=\"" + configs + "prompts/compact.txt\"",
          "corpus.folder=\"" + configs + "corpus\"", std::string("corpus.per_task=2"),
          std::string("node.devices=[]"), std::string("node.compilers=0"),
          std::string("generation.replicas=0"), std::string("generation.group_size=2"),
          std::string("generation.max_new_tokens=48"), std::string("sft.updates=4"),
          std::string("sft.updates_per_step=2"), std::string("self_supervised.steps=0"),
          std::string("contrastive.steps=2"), std::string("contrastive.count_truncated=true"),
          std::string("comparison.samples=1"), std::string("comparison.greedy_samples=0"),
          std::string("comparison.bare_samples=0")})
      all.insert(all.end(), {"--set", one});
    all.insert(all.end(), more.begin(), more.end());
    return command(all);
  }
  void expect_report(const std::vector<std::string>& how) const {
    program p(how);
    program helper = writer("helper", {"--devices", "simulated:a"});
    EXPECT_EQ(p.wait(std::chrono::seconds(60)), 0) << p.out() << p.err() << helper.out();
    EXPECT_EQ(helper.wait(std::chrono::seconds(20)), 0) << helper.out() << helper.err();
    EXPECT_THAT(p.out(), HasSubstr("comparing version"));
    EXPECT_THAT(read_file(run_folder() / "report.txt"), HasSubstr("Simulated devices"));
    EXPECT_THAT(helper.out(), Not(HasSubstr("failed")));
  }
};

TEST_F(DistantModel, WritesWithCopiesOfCheckpointsAndOfAdapters) {
  expect_report(model({"--set", "policy.folder=\"" + testing_support::tiny.string() + "\"", "--set",
                       "policy.random_weights=true"}));
  // The weights that it has learned become the policy of a run that trains adapters alone.
  const std::filesystem::path learned = folder_ / "learned";
  std::filesystem::rename(run_folder() / "checkpoints" / "4", learned);
  std::filesystem::remove_all(run_folder());
  std::filesystem::remove_all(cache("helper"));
  expect_report(model(
      {"--set", "policy.folder=\"" + learned.string() + "\"", "--set", "policy.adapter_rank=2"}));
}

TEST_F(DistantModel, NodesTakeCopiesFromEachOther) {
  // Steps of some seconds, so that all five ask for the same version.
  program p(model({"--set", "policy.folder=\"" + testing_support::tiny.string() + "\"", "--set",
                   "policy.random_weights=true", "--set", "sft.updates=100000", "--set",
                   "sft.updates_per_step=30"}));
  const program judging = writer("writer-0", {"--devices", "simulated:a"});
  const std::vector<std::string> only_writes = {"--compilers", "0"};
  const program second = writer("writer-1", only_writes);
  const program third = writer("writer-2", only_writes);
  const program fourth = writer("writer-3", only_writes);
  const program fifth = writer("writer-4", only_writes);
  const auto bytes_of_nodes = [&] {
    double bytes = 0;
    const auto status = run_hone({"status", "--dir", run_folder().string(), "--json"});
    for (const json& node : json_lines(status.out)) {
      for (const json& actor : node["actors"])
        bytes += actor["numbers"].value("bytes_of_nodes", 0.0);
    }
    return bytes;
  };
  EXPECT_TRUE(eventually([&] { return bytes_of_nodes() > 0; }, std::chrono::seconds(90)))
      << p.out() << run_hone({"status", "--dir", run_folder().string()}).out << judging.out()
      << second.out() << third.out() << fourth.out() << fifth.out() << fifth.err();
}

TEST_F(DistantGenerators, DataFilesOfTasksComeAsCopies) {
  const std::filesystem::path tasks = folder_ / "tasks";
  std::filesystem::create_directories(tasks);
  write_file(tasks / "scaled.toml", R"(name = "scaled"
reference = "def forward(x: Tensor, w: Tensor) -> Tensor: return x * w"
[[input]]
name = "x"
shape = [3]
[[parameter]]
name = "w"
shape = [3]
data = "w.safetensors"
[[case]]
timed = true
)");
  const std::string values(12, '\0');
  write_file(tasks / "w.safetensors", safetensors_text({{"w", "F32", {3}, values}}));
  program p(endless({"--set", "tasks.folder=\"" + tasks.string() + "\"", "--set", "tasks.names=[]",
                     "--set", "node.compilers=0", "--set", "self_supervised.steps=0"}));
  program helper({hone_program(), "node", "--join", (run_folder() / "address").string(),
                  "--devices", "simulated:a", "--name", "helper", "--cache", cache("helper")});
  EXPECT_TRUE(wait_for_versions(2)) << p.out() << p.err() << helper.out() << helper.err();
  EXPECT_THAT(helper.out(), HasSubstr("1 task\n"));
  EXPECT_TRUE(std::filesystem::exists(cache("helper"))) << "it was needed";
}

}  // namespace
}  // namespace hone
