// The day of somebody who has a PyTorch module and a machine without a GPU, through the program:
// what each step prints must be what a person needs for the next one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

constexpr const char* module_text = R"(
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.relu(x * self.scale) + x


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
)";

// Three variants: right, right with a kernel, and wrong.
constexpr const char* addcmul =
    "## Code Implementation\n```python\ndef forward(x: Tensor, scale: Tensor) -> Tensor:\n"
    "    return torch.addcmul(x, x, scale).maximum(x)\n```\n";
constexpr const char* kernel =
    "## Performance Analysis\nGood: one pass over memory.\n## Code Implementation\n```cuda\n"
    "extern \"C\" __global__ void gated(const float* x, const float* scale, float* y, int m, int "
    "n) "
    "{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = fmaxf(x[i] * scale[i % m], 0.0f) + x[i];\n}\n```\n```python\n"
    "def forward(x: Tensor, scale: Tensor) -> Tensor:\n    y = torch.empty_like(x)\n"
    "    n = x.numel()\n"
    "    launch(\"gated\", [(n + 255) // 256], [256], x, scale, y, x.size(1), n)\n"
    "    return y\n```\n";
constexpr const char* wrong =
    "## Code Implementation\n```python\ndef forward(x: Tensor, scale: Tensor) -> Tensor:\n"
    "    return torch.relu(x)\n```\n";

// Runs a command that judges. Where others work on the machine, as tests do, a measurement may be
// `unstable`, and is then worth another attempt.
outcome_of_program run_until_stable(const std::vector<std::string>& arguments) {
  constexpr int attempts = 4;
  auto done = run_hone(arguments);
  for (int i = 1; i < attempts && done.out.find("\"unstable\"") != std::string::npos; ++i)
    done = run_hone(arguments);
  return done;
}

class FirstDay : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string my(const std::string& name) const { return path("my/" + name); }
  std::size_t versions() const {
    const std::string metrics = read_file(my("run/metrics.jsonl"));
    return static_cast<std::size_t>(std::count(metrics.begin(), metrics.end(), '\n'));
  }

  temporary_folder folder_;
};

// One test, because each step needs what the steps before it have left.
TEST_F(FirstDay, LeadsFromAModuleToAResult) {
  write_file(path("gated.py"), module_text);
  write_file(path("no_model.py"), "import torch\n");
  EXPECT_NE(run_hone({"init", path("my"), path("no_model.py")}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("my"))) << "a refused module leaves nothing behind";
  const auto made = run_hone({"init", path("my"), path("gated.py")});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("hone run " + path("my") + "/run.toml --dry-run"));
  EXPECT_NE(run_hone({"init", path("my")}).code, 0) << "a folder with files is overwritten";

  const std::string task = my("tasks/gated.toml");
  EXPECT_EQ(run_hone({"task", "check", task}).code, 0);

  write_file(my("corpus/gated/addcmul.md"), addcmul);
  write_file(my("corpus/gated/kernel.md"), kernel);
  write_file(path("wrong.md"), wrong);
  const auto judged = run_until_stable({"eval", task, my("corpus/gated/the_reference.md"),
                                        my("corpus/gated/addcmul.md"), my("corpus/gated/kernel.md"),
                                        path("wrong.md"), "--json"});
  EXPECT_EQ(judged.code, 1) << "one of the four is wrong";
  std::vector<std::string> outcomes;
  for (const json& one : json_lines(judged.out)) outcomes.push_back(one["outcome"]);
  EXPECT_EQ(outcomes, (std::vector<std::string>{"ok", "ok", "ok", "wrong_result"}));

  const auto dry =
      run_hone({"run", my("run.toml"), "--dry-run", "--set", "node.devices=[\"cpu\"]"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("is valid: 1 task, 3 corpus documents"));
  EXPECT_THAT(dry.out, HasSubstr("gated: the corpus has 3 documents of it"));
  EXPECT_THAT(dry.out, testing::ContainsRegex("judging takes [0-9.]+ s a variant here \\(gated/"));
  EXPECT_THAT(dry.out, testing::ContainsRegex("prompts have [0-9]+ to [0-9]+ tokens"));

  const std::string lone = "hardly any task has two documents";
  EXPECT_EQ(dry.out.find(lone), std::string::npos);
  const std::vector<std::string> one_document = {
      "run",   my("run.toml"),     "--dry-run", "--set", "node.devices=[\"simulated:a\"]",
      "--set", "corpus.per_task=1"};
  EXPECT_THAT(run_hone(one_document).out, HasSubstr(lone));
  const std::vector<std::string> untimed = {
      "run",   my("run.toml"),      "--dry-run", "--set", "node.devices=[\"simulated:a\"]",
      "--set", "corpus.timed=false"};
  EXPECT_THAT(run_hone(untimed).out, HasSubstr("the corpus is not timed"));

  // A run with a real judge and a tiny policy, stopped, killed and resumed.
  const std::vector<std::string> start = {hone_program(),
                                          "run",
                                          my("run.toml"),
                                          "--set",
                                          "node.devices=[\"cpu\"]",
                                          "--set",
                                          "sft.updates=40",
                                          "--set",
                                          "sft.updates_per_step=10",
                                          "--set",
                                          "self_supervised.steps=0",
                                          "--set",
                                          "contrastive.steps=1000000",
                                          "--set",
                                          "contrastive.minutes=0",
                                          "--set",
                                          "generation.max_new_tokens=160",
                                          "--set",
                                          "comparison.samples=2"};
  program run(start);
  ASSERT_TRUE(eventually([&] { return versions() >= 2; }, std::chrono::seconds(60))) << run.err();
  run.send(SIGINT);
  EXPECT_EQ(run.wait(std::chrono::seconds(20)), 3);
  EXPECT_THAT(run.out(), HasSubstr("resume with: hone run"));
  EXPECT_THAT(run.out(), HasSubstr("gated: the corpus has 3 documents of it"));

  const std::vector<std::string> resume = {hone_program(), "run", "--dir", my("run"), "--resume"};
  const std::size_t before = versions();
  {
    program again(resume);
    ASSERT_TRUE(eventually([&] { return versions() > before; }, std::chrono::seconds(60)));
    again.send(SIGKILL);
    again.wait();
  }
  const auto resting = run_hone({"status", "--dir", my("run")});
  EXPECT_EQ(resting.code, 0) << resting.err;
  EXPECT_THAT(resting.out, HasSubstr("this run was stopped or killed"));
  EXPECT_THAT(resting.out, HasSubstr("gated"));
  EXPECT_THAT(resting.out, HasSubstr("hone run --dir " + my("run") + " --resume"));

  const auto reported = run_hone({"report", my("run")});
  EXPECT_EQ(reported.code, 0);
  EXPECT_THAT(reported.out, HasSubstr("gated"));
  EXPECT_THAT(reported.out, HasSubstr("programs judged"));
  EXPECT_THAT(reported.out, HasSubstr("stopped or killed before its end"));
  EXPECT_THAT(reported.out, HasSubstr("hone run --dir " + my("run") + " --resume"));
  EXPECT_EQ(run_hone({"pool", "verify", "--pool", my("run/pool")}).code, 0);

  const auto best = json_lines(run_hone({"pool", "top", "--pool", my("run/pool"), "--json"}).out);
  ASSERT_FALSE(best.empty());
  const auto again = json_lines(run_until_stable({"pool", "portability", "--pool", my("run/pool"),
                                                  "--devices", "cpu", "--share-cores", "--json"})
                                    .out);
  // A device that shares its core is of another type than that of the run.
  ASSERT_EQ(again.size(), 2U);
  for (const json& row : again) {
    EXPECT_EQ(row["variant"], best[0]["variant"]);
    EXPECT_EQ(row["outcome"], "ok") << row;
    EXPECT_EQ(row["measured_now"], row["device_type"].get<std::string>().ends_with("-shared"));
  }
  const auto taken = run_hone({"export", std::string(best[0]["variant"]), path("faster.py"),
                               "--pool", my("run/pool"), "--as", "torch"});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(read_file(path("faster.py")), HasSubstr("class ModelNew(Model)"));
}

}  // namespace
}  // namespace hone
