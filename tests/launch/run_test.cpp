// Tests of whole runs with simulated devices through the program: runs that are stopped, killed,
// resumed, joined by nodes, and damaged.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <random>
#include <regex>
#include <set>

#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

// Configuration of a run that ends after a few cheap steps. With contrastive.steps = 1000000 the
// run does not end.
constexpr const char* small_run = R"(
directory = "run"
[node]
devices = ["simulated:a", "simulated:b"]
[tasks]
folder = "%TASKS%"
names = ["softmax", "layer_norm"]
[policy]
kind = "scripted"
[generation]
group_size = 8
[pool]
max_groups = 16
max_lag = 4
[sft]
updates = 0
[self_supervised]
steps = 2
groups = 4
[contrastive]
steps = 6
groups = 4
one_per_task = false
[comparison]
samples = 4
[simulated.a]
verify_us = 100
measure_us = 300
[simulated.b]
verify_us = 100
measure_us = 500
)";

class Run : public testing::Test {
 protected:
  Run() {
    std::string text = small_run;
    text.replace(text.find("%TASKS%"), 7, std::string(HONE_SOURCE_DIR) + "/configs/tasks");
    write_file(folder_ / "small.toml", text);
  }
  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {hone_program(), "run", (folder_ / "small.toml").string(),
                                    "--dir", run_folder().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> endless(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--set", "contrastive.steps=1000000", "--set",
                               "pool.acknowledgements=acknowledged"});
    return command(more);
  }
  outcome_of_program run(std::vector<std::string> more = {},
                         const program::surroundings& where = {}) const {
    auto all = command(std::move(more));
    all.erase(all.begin());
    return run_hone(all, where);
  }
  std::filesystem::path run_folder() const { return folder_ / "run"; }
  std::string pool() const { return (run_folder() / "pool").string(); }
  std::uint64_t versions() const {
    std::uint64_t count = 0;
    const std::string metrics = read_file(run_folder() / "metrics.jsonl");
    for (const char c : metrics) count += c == '\n' ? 1 : 0;
    return count;
  }
  bool wait_for_versions(std::uint64_t count) const {
    return eventually([&] { return versions() >= count; });
  }
  std::string address() const {
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(run_folder() / "address"); }));
    std::string text = read_file(run_folder() / "address");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  void expect_nothing_lost() const {
    const auto verified = run_hone({"pool", "verify", "--pool", pool(), "--acknowledged",
                                    (run_folder() / "acknowledged").string()});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  }

  temporary_folder folder_;
};

TEST_F(Run, EndsWithFewerTasksThanGroupsPerStep) {
  const auto ended = run({"--set", "contrastive.one_per_task=true"});  // two tasks, four groups
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
}

TEST_F(Run, FailsIfNoCorpusDocumentIsOk) {
  const std::string configs = std::string(HONE_SOURCE_DIR) + "/configs/";
  const auto ended = run(
      {"--set", "policy.kind=model", "--set", "policy.folder=" + configs + "policies/tiny", "--set",
       "policy.random_weights=true", "--set", "prompt.template=" + configs + "prompts/compact.txt",
       "--set", "corpus.folder=" + configs + "corpus", "--set", "corpus.per_task=2", "--set",
       "sft.updates=10", "--set", "simulated.a.ok_share=0", "--set", "simulated.b.ok_share=0"});
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("none of the 8 documents of the corpus is ok here"));
}

TEST_F(Run, EndsInAReport) {
  const auto ended = run();
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("softmax"));
  const json report = json::parse(read_file(run_folder() / "report.json"));
  EXPECT_EQ(report["tasks"].size(), 4U);  // two tasks on two types of device
  EXPECT_TRUE(report.contains("comparison"));
  ASSERT_TRUE(report.contains("busy"));
  for (const char* room : {"generator", "compiler", "verifier", "benchmarker", "learner"})
    EXPECT_TRUE(report["busy"].contains(room)) << room;
  const json counted = json::parse(run_hone({"pool", "stats", "--pool", pool(), "--json"}).out);
  EXPECT_LE(report["judged"], counted["evaluations"]);
  EXPECT_GT(report["judged"], 0);
  // The report also counts the measurements of the comparison.
  EXPECT_GT(report["measurements"], counted["measurements"]);
  for (const char* kept :
       {"config.toml", "metrics.jsonl", "trace.json", "report.txt", "pool", "checkpoints"})
    EXPECT_TRUE(std::filesystem::exists(run_folder() / kept)) << kept;
  EXPECT_EQ(run_hone({"pool", "verify", "--pool", pool()}).code, 0);
}

TEST_F(Run, ItsVariantsCanBeExportedFromThePool) {
  ASSERT_EQ(run().code, 0);
  const auto listed = json_lines(
      run_hone({"pool", "ls", "--pool", pool(), "--task", "softmax", "--outcome", "ok", "--json"})
          .out);
  ASSERT_FALSE(listed.empty());
  const std::string id = listed[0]["variant"];
  const std::string file = (folder_ / "faster.py").string();
  const auto exported = run_hone({"export", id, file, "--pool", pool(), "--as", "torch"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const std::string head = read_file(file).substr(0, 400);
  EXPECT_THAT(head, HasSubstr("Variant " + id));
  EXPECT_THAT(head, HasSubstr("times as fast as the original on simulated-"));
  EXPECT_THAT(run_hone({"export", "0123456789abcdef", file, "--pool", pool(), "--as", "torch"}).err,
              HasSubstr("0123456789abcdef"));
}

TEST_F(Run, ItsOwnCopyOfTheConfigurationStartsTheSameRun) {
  ASSERT_EQ(run().code, 0);
  const auto again = run_hone(
      {"run", (run_folder() / "config.toml").string(), "--dir", (folder_ / "second").string()});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  const auto here = run_hone({"run", (run_folder() / "config.toml").string()});
  EXPECT_EQ(here.code, 2);
  EXPECT_THAT(here.err, HasSubstr(run_folder().string() + ": there is a run already"))
      << "the copy does not name the run's own directory";
}

TEST_F(Run, ADryRunStartsNothing) {
  const auto dry = run({"--dry-run"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.out, HasSubstr("[contrastive]"));
  EXPECT_FALSE(std::filesystem::exists(run_folder()));
}

TEST_F(Run, IsNotStartedTwiceInOneDirectory) {
  const program first(endless());
  ASSERT_TRUE(wait_for_versions(1));
  const auto second = run({"--resume"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("another process"));
}

TEST_F(Run, DoesNotOverwriteAFinishedRun) {
  ASSERT_EQ(run().code, 0);
  const auto second = run();
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("--resume"));
}

TEST_F(Run, AFinishedRunIsLeftAsItIsByResume) {
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

TEST_F(Run, AFinishedRunGoesOnByMoreSteps) {
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
  EXPECT_EQ(run_hone({"pool", "verify", "--pool", pool()}).code, 0);
}

TEST_F(Run, AnExtensionNamesTheStepsOfTheContrastiveStage) {
  for (const char* wrong : {"sft.updates=3", "contrastive.steps", "contrastive.steps=-1"}) {
    const auto refused = run({"--extend", wrong});
    EXPECT_NE(refused.code, 0) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("contrastive.steps=N")) << wrong;
  }
}

TEST_F(Run, ResumesWithTheConfigurationThatItKeeps) {
  program p(endless());
  ASSERT_TRUE(wait_for_versions(2));
  p.send(SIGINT);
  ASSERT_EQ(p.wait(std::chrono::seconds(10)), 3);
  program again({hone_program(), "run", "--dir", run_folder().string(), "--resume"});
  ASSERT_TRUE(wait_for_versions(versions() + 2));
  again.send(SIGINT);
  EXPECT_EQ(again.wait(std::chrono::seconds(10)), 3);
  const auto nameless = run_hone({"run", "--resume"});
  EXPECT_NE(nameless.code, 0);
  EXPECT_THAT(nameless.err, HasSubstr("--dir"));
}

// Of a policy, a corpus and devices that a start would refuse.
TEST_F(Run, ADryRunNamesEveryProblem) {
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
  for (const char* problem : {"softmax/prose: ", "corpus/sofmax: the folder has documents",
                              "has no *.safetensors", "policy.random_weights = true"})
    EXPECT_THAT(refused.err, HasSubstr(problem));
  EXPECT_THAT(refused.err, testing::AnyOf(HasSubstr("NVIDIA driver"), HasSubstr("GPU 77")));
  EXPECT_FALSE(std::filesystem::exists(run_folder()));
  const auto started = run(settings);
  EXPECT_EQ(started.code, 2);
  EXPECT_THAT(started.err, HasSubstr("corpus/sofmax: the folder has documents"));
}

TEST_F(Run, RefusesToMixSimulatedAndRealDevices) {
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

TEST_F(Run, ResumeWithoutARunIsRefused) {
  const auto resumed = run({"--resume"});
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("no run to resume"));
}

TEST_F(Run, ASignalEndsItWithinTenSecondsAndNamesTheResumeCommand) {
  for (const int signal_number : {SIGINT, SIGTERM}) {
    program p(endless(signal_number == SIGTERM ? std::vector<std::string>{"--resume"}
                                               : std::vector<std::string>{}));
    ASSERT_TRUE(wait_for_versions(versions() + 2));
    p.send(signal_number);
    EXPECT_EQ(p.wait(std::chrono::seconds(10)), 3);
    EXPECT_THAT(p.out(), HasSubstr("hone run"));
    EXPECT_THAT(p.out(), HasSubstr("--resume"));
    EXPECT_THAT(p.out(), HasSubstr("hone report " + run_folder().string()));
    const auto reported = run_hone({"report", run_folder().string(), "--json"});
    ASSERT_EQ(reported.code, 0) << reported.err;
    const json report = json::parse(reported.out);
    const json counted = json::parse(run_hone({"pool", "stats", "--pool", pool(), "--json"}).out);
    EXPECT_GT(report["judged"], 0);
    EXPECT_LE(report["judged"], counted["evaluations"]);
  }
  expect_nothing_lost();
}

TEST_F(Run, ASecondSignalEndsItAtOnce) {
  // Measurements of five seconds keep the run from stopping soon after the first signal.
  program p(endless(
      {"--set", "simulated.a.measure_us=5000000", "--set", "simulated.b.measure_us=5000000"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run_folder() / "address"); }));
  p.send(SIGINT);
  ASSERT_TRUE(eventually(
      [&] { return p.has_ended() || p.out().find("second signal") != std::string::npos; }));
  p.send(SIGINT);
  EXPECT_TRUE(p.wait(std::chrono::seconds(2)).has_value());
}

TEST_F(Run, ResumesAfterAKillWithEverythingAcknowledged) {
  std::mt19937 random(std::random_device{}());
  std::vector<std::string> more;
  for (int kills = 0; kills < 5; ++kills) {
    program p(endless(more));
    ASSERT_TRUE(wait_for_versions(versions() + 1 + random() % 20)) << p.out() << p.err();
    p.send(SIGKILL);
    p.wait();
    expect_nothing_lost();
    more = {"--resume"};
  }
}

TEST_F(Run, ItsPoolCanBeInspectedDuringTheRun) {
  const program p(endless());
  ASSERT_TRUE(wait_for_versions(4));
  const auto ls = run_hone({"pool", "ls", "--pool", pool(), "--json"});
  ASSERT_EQ(ls.code, 0) << ls.err;
  const auto variants = json_lines(ls.out);
  ASSERT_FALSE(variants.empty());
  const std::string id = variants.front()["variant"];
  EXPECT_THAT(run_hone({"pool", "show", id.substr(0, 12), "--pool", pool()}).out, HasSubstr(id));
  EXPECT_EQ(json_lines(run_hone({"pool", "show", id, "--pool", pool(), "--json"}).out).size(), 1U);
  EXPECT_EQ(run_hone({"pool", "diff", id, variants.back()["variant"], "--pool", pool()}).code, 0);
  EXPECT_THAT(run_hone({"pool", "lineage", id, "--pool", pool()}).out, HasSubstr(id.substr(0, 8)));
  EXPECT_EQ(json_lines(run_hone({"pool", "stats", "--pool", pool(), "--json"}).out).size(), 1U);
  EXPECT_GE(json_lines(run_hone({"pool", "top", "--pool", pool(), "--json"}).out).size(), 1U);
  EXPECT_EQ(run_hone({"pool", "verify", "--pool", pool()}).code, 0);
  EXPECT_GE(
      json_lines(run_hone({"pool", "export", "--pool", pool(), "--task", "softmax"}).out).size(),
      1U);
  const auto unknown = run_hone({"pool", "show", "zzzz", "--pool", pool()});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("zzzz"));
  for (const char* command : {"ls", "top", "export"}) {
    const auto no_task = run_hone({"pool", command, "--pool", pool(), "--task", "softmix"});
    EXPECT_EQ(no_task.code, 2) << command;
    EXPECT_THAT(no_task.err, HasSubstr("no task softmix; it has "));
  }
  EXPECT_EQ(run_hone({"pool", "ls", "--pool", pool(), "--outcome", "infrastructure"}).code, 0);
  EXPECT_EQ(run_hone({"pool", "ls", "--pool", pool(), "--outcome", "wrong_reslt"}).code, 2);
}

TEST_F(Run, ReportsItsStatusByAddressAndByDirectory) {
  const program p(endless());
  ASSERT_TRUE(wait_for_versions(2));
  std::set<std::string> rooms;
  // Telemetry collects the status of the actors in rounds of a second, so some may be missing at
  // first.
  const bool all_known = eventually([&] {
    const auto by_address = run_hone({"status", "--connect", address(), "--json"});
    if (by_address.code != 0) return false;
    const json node = json_lines(by_address.out).at(0);
    EXPECT_EQ(node["device_types"], json({"simulated-a", "simulated-b"}));
    rooms.clear();
    for (const auto& actor : node["actors"]) rooms.insert(actor["room"]);
    return rooms.size() == 8;
  });
  EXPECT_TRUE(all_known);
  EXPECT_THAT(rooms,
              testing::UnorderedElementsAre("pool", "queue", "compiler", "verifier", "benchmarker",
                                            "device", "generator", "learner"));
  const auto by_directory = run_hone({"status", "--dir", run_folder().string()});
  EXPECT_EQ(by_directory.code, 0);
  EXPECT_THAT(by_directory.out, HasSubstr("queue benchmark"));
}

TEST_F(Run, StatusAfterItsEndIsAnError) {
  ASSERT_EQ(run().code, 0);
  const auto ended = run_hone({"status", "--dir", run_folder().string()});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("this run has ended, was killed, or does not answer: "));
  EXPECT_THAT(ended.err, HasSubstr("nothing listens there"));
}

TEST_F(Run, AJoinedNodeTakesJobsAndItsDeathLosesNone) {
  const program p(
      endless({"--set", "node.devices=[\"simulated:a\"]", "--set", "node.compilers=0"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run_folder() / "address"); }));
  // Nothing can be compiled until a node joins.
  program helper({hone_program(), "node", "--join", address(), "--devices",
                  "simulated:a,simulated:c", "--name", "helper"});
  ASSERT_TRUE(wait_for_versions(3)) << p.out() << helper.out() << helper.err();
  ASSERT_TRUE(eventually([&] {
    return run_hone({"status", "--connect", address()}).out.find("helper") != std::string::npos;
  }));
  helper.send(SIGKILL);
  helper.wait();
  // The jobs of the killed node wait for the second one.
  program second({hone_program(), "node", "--join", address(), "--devices", "simulated:a", "--name",
                  "second"});
  const std::uint64_t then = versions();
  EXPECT_TRUE(wait_for_versions(then + 3)) << p.out() << second.out() << second.err();
  p.send(SIGKILL);
  // A node ends when its run is gone.
  EXPECT_EQ(second.wait(std::chrono::seconds(20)), 0) << second.out();
  EXPECT_THAT(second.out(), HasSubstr("is gone"));
  expect_nothing_lost();
}

TEST_F(Run, ANodeWithoutDevicesCompilesForOtherNodes) {
  const program p(
      endless({"--set", "node.devices=[\"simulated:a\"]", "--set", "node.compilers=0"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run_folder() / "address"); }));
  program helper(
      {hone_program(), "node", "--join", address(), "--compilers", "2", "--name", "helper"});
  EXPECT_TRUE(wait_for_versions(3)) << p.out() << helper.out() << helper.err();
  p.send(SIGKILL);
  EXPECT_EQ(helper.wait(std::chrono::seconds(20)), 0) << helper.out();
  EXPECT_THAT(helper.out(), HasSubstr("0 devices and 2 compilers"));
}

TEST_F(Run, SurvivesRandomBytesOnItsPort) {
  program p(endless());
  ASSERT_TRUE(wait_for_versions(1));
  const std::string where = address();
  const auto port = static_cast<std::uint16_t>(std::stoi(where.substr(where.find(':') + 1)));
  std::mt19937_64 random(7);
  for (int connection = 0; connection < 40; ++connection) {
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    std::string bytes(1 + random() % 4096, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    (void)send(s, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(s);
  }
  const std::uint64_t then = versions();
  EXPECT_TRUE(wait_for_versions(then + 3));
  EXPECT_FALSE(p.has_ended()) << p.out() << p.err();
  // CAF allocates the payload that a header announces, so a connection may take seconds or fail,
  // and is repeated.
  std::string problem;
  EXPECT_TRUE(testing_support::eventually(
      [&] {
        const auto status = run_hone({"status", "--connect", where});
        problem = status.err;
        return status.code == 0;
      },
      std::chrono::seconds(90)))
      << problem;
}

TEST_F(Run, AFullDiskEndsItWithAMessageAndLosesNothing) {
  const auto full = [&] {
    auto all = endless();
    all.erase(all.begin());
    return run_hone(all, {{}, 3U << 20U});
  }();
  EXPECT_EQ(full.code, 1) << full.out << full.err;
  EXPECT_THAT(full.out + full.err, HasSubstr("resume"));
  expect_nothing_lost();
  program p(endless({"--resume"}));  // there is room again
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << p.err();
}

TEST_F(Run, DamagedCheckpointsAreSkippedAndReported) {
  {
    program p(endless());
    ASSERT_TRUE(wait_for_versions(12));
    p.send(SIGTERM);
    p.wait();
  }
  std::uint64_t newest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run_folder() / "checkpoints"))
    newest = std::max<std::uint64_t>(newest, std::stoull(entry.path().filename()));
  for (const auto& entry :
       std::filesystem::directory_iterator(run_folder() / "checkpoints" / std::to_string(newest)))
    std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) / 2);
  program p(endless({"--resume"}));
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << p.err();
  EXPECT_THAT(p.out(), HasSubstr("looking for an earlier one"));
  p.send(SIGTERM);
  p.wait();
  expect_nothing_lost();
}

TEST_F(Run, ADamagedPoolIsRefusedWithAMessage) {
  ASSERT_EQ(run().code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(pool())) {
    if (entry.path().filename().string().starts_with("MANIFEST"))
      std::filesystem::resize_file(entry.path(), 20);
  }
  const auto resumed = run({"--resume"});
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("pool"));
}

TEST_F(Run, AnInvalidTaskFileIsNamed) {
  write_file(
      folder_ / "tasks" / "broken.toml",
      "name = \"broken\"\nsummary = \"x\"\nreference = \"def forward(x: Tensor) -> Tensor: return "
      "x\"\nreferense = 1\n[[input]]\nname = \"x\"\nshape = [1]\n[[case]]\ntimed = true\n");
  const auto refused = run({"--set", "tasks.folder=tasks", "--set", "tasks.names=[\"broken\"]"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("broken.toml:4"));
  EXPECT_THAT(refused.err, HasSubstr("referense"));
}

}  // namespace
}  // namespace hone
