// Tests of how runs start through the program: what they refuse, what a dry run finds, and how runs
// are resumed and extended.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>
#include <thread>

#include "tests/support/json_lines.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

class RunStart : public small_run_test {};

TEST_F(RunStart, RefusesAFolderThatHoldsSomethingElse) {
  std::filesystem::create_directories(run_folder());
  write_file(run_folder() / "thesis.tex", "text");
  const auto ended = run();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("holds files of something else, such as thesis.tex"));
  EXPECT_FALSE(std::filesystem::exists(run_folder() / "lock"));
}

TEST_F(RunStart, RefusesAPolicyThatItCannotStartFromBeforeItMakesAFolder) {
  const std::string configs = std::string(HONE_SOURCE_DIR) + "/configs/";
  const auto policy = folder_ / "policy";
  std::filesystem::copy(configs + "policies/tiny", policy);
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--set", "policy.kind=model",
                                    "--set", "prompt.template=" + configs + "prompts/compact.txt",
                                    "--set", "corpus.folder=" + configs + "corpus"};
    for (const std::string& one : more) all.insert(all.end(), {"--set", one});
    const auto ended = run(all);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(run_folder())) << ended.err;
    return ended.err;
  };
  const std::string folder = "policy.folder=" + policy.string();
  EXPECT_THAT(refusal({"policy.folder=" + (folder_ / "none").string()}),
              HasSubstr("policy.folder: " + (folder_ / "none").string() + " is not a folder"));
  EXPECT_THAT(refusal({folder}),
              HasSubstr("policy.folder: " + policy.string() + ": has no *.safe"));
  write_file(policy / "model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(refusal({folder}), HasSubstr("is a pointer of Git LFS"));
  EXPECT_THAT(refusal({folder, "policy.random_weights=true", "policy.device=cuda:99"}),
              HasSubstr("policy.device: is 'cuda:99'"));
  EXPECT_THAT(
      refusal({folder, "policy.random_weights=true", "prompt.template=" + configs + "ring.toml"}),
      HasSubstr("prompt.template: " + configs + "ring.toml has no {{...}}"));
  EXPECT_THAT(refusal({folder, "policy.random_weights=true", "corpus.folder=/nowhere"}),
              HasSubstr("corpus.folder: /nowhere is not a folder"));
}

TEST_F(RunStart, FailsIfNoCorpusDocumentIsOk) {
  const std::string configs = std::string(HONE_SOURCE_DIR) + "/configs/";
  const auto ended = run(
      {"--set", "policy.kind=model", "--set", "policy.folder=" + configs + "policies/tiny", "--set",
       "policy.random_weights=true", "--set", "prompt.template=" + configs + "prompts/compact.txt",
       "--set", "corpus.folder=" + configs + "corpus", "--set", "corpus.per_task=2", "--set",
       "sft.updates=10", "--set", "simulated.a.ok_share=0", "--set", "simulated.b.ok_share=0"});
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("none of the 8 documents of the corpus is ok here"));
}

TEST_F(RunStart, HasTheTeacherWriteOfTasksWithoutDocuments) {
  const auto configs = std::filesystem::path(HONE_SOURCE_DIR) / "configs";
  const auto tasks = folder_ / "tasks";
  std::string text = read_file(configs / "tasks/softmax.toml");
  std::filesystem::create_directories(tasks);
  write_file(tasks / "softmax.toml", text);
  text.replace(text.find("\"softmax\""), 9, "\"another\"");
  write_file(tasks / "another.toml", text);
  std::filesystem::create_directories(folder_ / "corpus");
  std::filesystem::copy(configs / "corpus/softmax", folder_ / "corpus/softmax");
  const auto dry = run({"--dry-run", "--set", "tasks.folder=" + tasks.string(), "--set",
                        "tasks.names=[]", "--set", "corpus.folder=" + (folder_ / "corpus").string(),
                        "--set", "corpus.per_task=3", "--set", "corpus.taught=2"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("5 corpus documents"));  // three of softmax, two by the teacher
}

TEST_F(RunStart, RefusesToHaveTheTeacherWriteForNoDevice) {
  const auto ended = run({"--dry-run", "--set", "node.devices=[]", "--set", "corpus.held_out=1",
                          "--set", "tasks.held_out=[\"cross_entropy\"]"});
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("the teacher writes for the first of them"));
}

TEST_F(RunStart, LeavesOutTasksWithoutAResult) {
  const auto configs = std::filesystem::path(HONE_SOURCE_DIR) / "configs";
  const auto tasks = folder_ / "tasks";
  std::string text = read_file(configs / "tasks/softmax.toml");
  std::filesystem::create_directories(tasks);
  write_file(tasks / "softmax.toml", text);
  text.replace(text.find("\"softmax\""), 9, "\"empty\"\nhas_result = false");
  write_file(tasks / "empty.toml", text);
  const std::string folder = "tasks.folder=" + tasks.string();
  const auto dry = run({"--dry-run", "--set", folder, "--set", "tasks.names=[]"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("is valid: 1 task,"));
  const auto named = run({"--dry-run", "--set", folder, "--set", "tasks.names=[\"empty\"]"});
  EXPECT_NE(named.code, 0);
  EXPECT_THAT(named.err, HasSubstr("'empty' has no result"));
}

TEST_F(RunStart, HoldsOutACountOfTheTasksThatAreNotNamedAndReportsThemByTier) {
  const auto tasks = folder_ / "tasks";
  std::filesystem::create_directories(tasks);
  const auto configs = std::filesystem::path(HONE_SOURCE_DIR) / "configs";
  for (const auto& file : std::filesystem::directory_iterator(configs / "tasks")) {
    const std::string tier = file.path().stem() == "cross_entropy" ? "tier = 2\n" : "tier = 1\n";
    write_file(tasks / file.path().filename(), tier + read_file(file.path()));
  }
  const auto ended = run({"--set", "tasks.folder=" + tasks.string(), "--set",
                          "tasks.held_out=[\"cross_entropy\"]", "--set", "tasks.held_out_count=1"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json report = json::parse(read_file(run_folder() / "report.json"));
  std::set<std::string> held_out;
  for (const json& task : report["held_out"][0]["tasks"])
    held_out.insert(std::string(task["task"]).substr(0, std::string(task["task"]).find(' ')));
  EXPECT_EQ(held_out.size(), 2U);
  EXPECT_TRUE(held_out.contains("cross_entropy"));
  for (const json& row : report["held_out"]) {
    ASSERT_EQ(row["tiers"].size(), 2U);
    double ok = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(row["tiers"][i]["tier"], i + 1);
      ok += row["tiers"][i]["sampled"]["ok"].get<double>() / 2;
    }
    EXPECT_NEAR(row["sampled"]["ok"], ok, 1e-9) << "a task each";
  }
  for (const json& task : report["comparison"]["tasks"]) {
    const std::string name = task["task"];
    EXPECT_FALSE(held_out.contains(name.substr(0, name.find(' ')))) << name;
  }
  std::filesystem::remove_all(run_folder());
  const auto all = run({"--set", "tasks.held_out_count=1000"});
  EXPECT_NE(all.code, 0);
  EXPECT_THAT(all.err, HasSubstr("all tasks are held out"));
}

TEST_F(RunStart, ItsOwnCopyOfTheConfigurationStartsTheSameRun) {
  ASSERT_EQ(run().code, 0);
  const auto again = run_hone(
      {"run", (run_folder() / "config.toml").string(), "--dir", (folder_ / "second").string()});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  const auto here = run_hone({"run", (run_folder() / "config.toml").string()});
  EXPECT_EQ(here.code, 2);
  EXPECT_THAT(here.err, HasSubstr(run_folder().string() + ": there is a run already"))
      << "the copy does not name the run's own directory";
}

TEST_F(RunStart, ADryRunStartsNothing) {
  const auto dry = run({"--dry-run"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.out, HasSubstr("[contrastive]"));
  EXPECT_FALSE(std::filesystem::exists(run_folder()));
}

TEST_F(RunStart, IsNotStartedTwiceInOneDirectory) {
  const program first(endless());
  ASSERT_TRUE(wait_for_versions(1));
  const auto second = run({"--resume"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("another process runs in this directory, process "));
}

TEST_F(RunStart, DoesNotOverwriteAFinishedRun) {
  ASSERT_EQ(run().code, 0);
  const auto second = run();
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("--resume"));
}

TEST_F(RunStart, AFinishedRunIsLeftAsItIsByResume) {
  ASSERT_EQ(run().code, 0);
  std::map<std::string, std::string> before;
  for (const char* name : {"report.txt", "report.json", "config.toml", "metrics.jsonl"})
    before[name] = read_file(run_folder() / name);
  const auto resumed = run({"--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("this run has finished, and is left as it is"));
  EXPECT_THAT(resumed.out, HasSubstr("--extend contrastive.steps=20"));
  for (const auto& [name, text] : before) EXPECT_EQ(read_file(run_folder() / name), text) << name;
}

TEST_F(RunStart, AFinishedRunGoesOnByMoreSteps) {
  ASSERT_EQ(run().code, 0);
  const auto versions_before = versions();
  const auto extended =
      run_hone({"run", "--dir", run_folder().string(), "--extend", "contrastive.steps=3"});
  ASSERT_EQ(extended.code, 0) << extended.out << extended.err;
  // The stage's last step is made again, three more follow, and the comparison ends the run.
  EXPECT_EQ(versions(), versions_before + 1 + 3 + 1);
  EXPECT_THAT(read_file(run_folder() / "config.toml"), HasSubstr("steps = 9"));
  EXPECT_EQ(run_hone({"run", "--dir", run_folder().string(), "--resume"}).code, 0);
  EXPECT_EQ(versions(), versions_before + 1 + 3 + 1) << "a finished run went on";
  const auto status = run_hone({"status", "--dir", run_folder().string()});
  EXPECT_THAT(status.out, HasSubstr("this run has finished, version "));
  EXPECT_EQ(run_hone({"pool", "verify", "--pool", pool()}).code, 0);
}

TEST_F(RunStart, AnExtensionIsMadeOrRefusedIfTheLastCheckpointIsDamaged) {
  ASSERT_EQ(run().code, 0);
  std::uint64_t last = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run_folder() / "checkpoints"))
    last = std::max<std::uint64_t>(last, std::stoull(entry.path().filename().string()));
  write_file(run_folder() / "checkpoints" / std::to_string(last) / "checkpoint.json", "{");
  const auto versions_before = versions();
  const auto extended =
      run_hone({"run", "--dir", run_folder().string(), "--extend", "contrastive.steps=3"});
  EXPECT_THAT(extended.out + extended.err, HasSubstr("looking for an earlier one"));
  if (extended.code == 0) {
    EXPECT_GE(versions(), versions_before + 3) << extended.out;
  } else {
    EXPECT_THAT(extended.err, HasSubstr("has no contrastive stage that could go on"));
    EXPECT_EQ(versions(), versions_before);
  }
}

TEST_F(RunStart, AnExtensionNamesTheStepsOfTheContrastiveStage) {
  for (const char* wrong : {"sft.updates=3", "contrastive.steps", "contrastive.steps=-1"}) {
    const auto refused = run({"--extend", wrong});
    EXPECT_NE(refused.code, 0) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("contrastive.steps=N")) << wrong;
  }
}

TEST_F(RunStart, ResumesWithTheConfigurationThatItKeeps) {
  program p(endless());
  ASSERT_TRUE(wait_for_versions(2));
  p.send(SIGINT);
  ASSERT_EQ(p.wait(std::chrono::seconds(10)), 3);
  const auto real =
      run({"--resume", "--set", "node.devices=[\"cpu\"]", "--set", "node.share_cores=true"});
  EXPECT_EQ(real.code, 2);
  EXPECT_THAT(real.err, HasSubstr("scores are from simulated devices"));
  program again({hone_program(), "run", "--dir", run_folder().string(), "--resume"});
  ASSERT_TRUE(wait_for_versions(versions() + 2));
  again.send(SIGINT);
  EXPECT_EQ(again.wait(std::chrono::seconds(10)), 3);
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--resume"}, {"--extend", "contrastive.steps=2"}}) {
    std::vector<std::string> command = {"run", "--dir", (folder_ / "nowhere").string()};
    command.insert(command.end(), how.begin(), how.end());
    const auto nowhere = run_hone(command);
    EXPECT_EQ(nowhere.code, 2);
    EXPECT_THAT(nowhere.err, HasSubstr("no run has been started"));
  }
  const auto nameless = run_hone({"run", "--resume"});
  EXPECT_NE(nameless.code, 0);
  EXPECT_THAT(nameless.err, HasSubstr("--dir"));
}

// Of a policy, a corpus and devices that a start would refuse.
TEST_F(RunStart, ADryRunNamesEveryProblem) {
  const std::string configs = std::string(HONE_SOURCE_DIR) + "/configs/";
  std::filesystem::create_directories(folder_ / "corpus/softmax");
  std::filesystem::create_directories(folder_ / "corpus/sofmax");
  write_file(folder_ / "corpus/softmax/prose.md", "no code\n");
  write_file(folder_ / "corpus/sofmax/row.md",
             read_file(configs + "corpus/softmax/amax_passes.md"));
  std::filesystem::create_directories(folder_ / "policy");
  for (const char* name : {"config.json", "tokenizer.json"})
    std::filesystem::copy(configs + "policies/tiny/" + name, folder_ / "policy" / name);
  write_file(folder_ / "policy/pytorch_model.bin", "weights in another format");
  const std::vector<std::string> settings = {
      "--set", "policy.kind=model",
      "--set", "policy.folder=" + (folder_ / "policy").string(),
      "--set", "prompt.template=" + configs + "prompts/compact.txt",
      "--set", "corpus.folder=" + (folder_ / "corpus").string(),
      "--set", "sft.updates=10"};
  auto dry = settings;
  dry.insert(dry.end(), {"--dry-run", "--set", "node.devices=[\"cuda:77\"]"});
  const auto refused = run(dry);
  EXPECT_EQ(refused.code, 2);
  for (const char* problem : {"softmax/prose.md: ", "corpus/sofmax: the folder has documents",
                              "has no *.safetensors", "policy.random_weights = true"})
    EXPECT_THAT(refused.err, HasSubstr(problem));
  EXPECT_THAT(refused.err, testing::AnyOf(HasSubstr("NVIDIA driver"), HasSubstr("GPU 77")));
  EXPECT_FALSE(std::filesystem::exists(run_folder()));
  const auto started = run(settings);
  EXPECT_EQ(started.code, 2);
  EXPECT_THAT(started.err, HasSubstr("corpus/sofmax: the folder has documents"));
}

TEST_F(RunStart, ADryRunComparesLengthsAndEstimatesTheTimeOfJudging) {
  const std::string configs = std::string(HONE_SOURCE_DIR) + "/configs/";
  const auto dry =
      run({"--dry-run", "--set", "policy.kind=model", "--set",
           "policy.folder=" + configs + "policies/tiny", "--set", "policy.random_weights=true",
           "--set", "prompt.template=" + configs + "prompts/compact.txt", "--set",
           "corpus.folder=" + configs + "corpus", "--set", "sft.updates=10", "--set",
           "generation.max_new_tokens=20"});
  ASSERT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("more than generation.max_new_tokens = 20"));
  EXPECT_THAT(dry.out, testing::ContainsRegex("prompts have [0-9]+ to [0-9]+ tokens, 2 exemplars"));
  for (const char* type : {"simulated:a", "simulated:b"})
    EXPECT_THAT(dry.out, HasSubstr(std::string("device ") + type));
  EXPECT_THAT(dry.out, testing::ContainsRegex("judging takes [0-9.]+ s a variant here "
                                              "\\(layer_norm/[^,]*, softmax/[^,]*\\)"));
}

TEST_F(RunStart, RefusesToMixSimulatedAndRealDevices) {
  const std::vector<std::string> mixed = {"--set", "node.devices=[\"cpu\",\"simulated:a\"]",
                                          "--dry-run"};
  const auto refused = run(mixed);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("node.mix_simulated"));
  auto allowed = mixed;
  allowed.insert(allowed.end(),
                 {"--set", "node.mix_simulated=true", "--set", "node.share_cores=true"});
  EXPECT_EQ(run(allowed).code, 0);
}

TEST_F(RunStart, GoesOnWheneverItIsKilled) {
  for (int ms = 20; ms <= 1000; ms += 90) {
    std::filesystem::remove_all(run_folder());
    program p(command());
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    p.send(SIGKILL);
    p.wait();
    const bool has_begun = std::filesystem::exists(run_folder() / "config.toml");
    const auto ended =
        has_begun ? run_hone({"run", "--dir", run_folder().string(), "--resume"}) : run();
    EXPECT_EQ(ended.code, 0) << "killed after " << ms << " ms: " << ended.err;
    EXPECT_EQ(run_hone({"pool", "verify", "--pool", pool()}).code, 0) << ms << " ms";
  }
}

// A disk that is too small for the pool or the first checkpoint, and larger when the run is started
// again. Each run is in a separate mount namespace.
TEST_F(RunStart, GoesOnOnceItsDiskIsNoLongerFull) {
  if (geteuid() != 0) GTEST_SKIP() << "mounts need root";
  const std::string disk = (folder_ / "disk").string();
  std::filesystem::create_directories(disk);
  const std::string start = "'" + hone_program() + "' run '" + (folder_ / "small.toml").string() +
                            "' --dir " + disk +
                            "/run --set policy.kind=model --set 'policy.folder=\"" HONE_SOURCE_DIR
                            "/configs/policies/tiny\"' --set policy.random_weights=true"
                            " --set 'prompt.template=\"" HONE_SOURCE_DIR
                            "/configs/prompts/compact.txt\"' --set self_supervised.steps=0"
                            " --set contrastive.steps=0 --set generation.max_new_tokens=8";
  for (const char* megabytes : {"1", "4", "14", "20", "40"}) {
    const std::string script =
        "mount -t tmpfs -o size=" + std::string(megabytes) + "m tmpfs " + disk + " || exit 99\n" +
        start + " >" + disk + ".first 2>&1; first=$?\n" + "mount -o remount,size=500m " + disk +
        " || exit 99\nif [ -e " + disk + "/run/config.toml ]; then '" + hone_program() +
        "' run --dir " + disk + "/run --resume; else " + start + "; fi || exit 98\n" + "'" +
        hone_program() + "' pool verify --pool " + disk + "/run/pool || exit 97\nexit $first\n";
    program both({"/usr/bin/unshare", "--mount", "/bin/sh", "-c", script});
    const auto code = both.wait(std::chrono::seconds(60));
    ASSERT_TRUE(code);
    if (*code == 99) GTEST_SKIP() << "mounts need root";
    EXPECT_LT(*code, 90) << megabytes << " MiB: " << both.out() << both.err();
    if (*code != 0) {
      EXPECT_THAT(read_file(disk + ".first"),
                  testing::AnyOf(HasSubstr("the disk is full"), HasSubstr("No space left")))
          << megabytes << " MiB";
    }
    expect_plain_messages(read_file(disk + ".first"));
  }
}

TEST_F(RunStart, ResumeWithoutARunIsRefused) {
  const auto resumed = run({"--resume"});
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("no run to resume"));
}

TEST_F(RunStart, AnInvalidTaskFileIsNamed) {
  write_file(
      folder_ / "tasks" / "broken.toml",
      "name = \"broken\"\nsummary = \"x\"\nreference = \"def forward(x: Tensor) -> Tensor: return "
      "x\"\nreferense = 1\n[[input]]\nname = \"x\"\nshape = [1]\n[[case]]\ntimed = true\n");
  const auto refused = run({"--set", "tasks.folder=" + (folder_ / "tasks").string(), "--set",
                            "tasks.names=[\"broken\"]"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("broken.toml:4"));
  EXPECT_THAT(refused.err, HasSubstr("referense"));
}

}  // namespace
}  // namespace hone
