// Tests of whole runs through the program: runs that are stopped, killed, joined by nodes, and
// damaged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iterator>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/json_lines.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

class Run : public small_run_test {};

TEST_F(Run, EndsWithFewerTasksThanGroupsPerStep) {
  const auto ended = run({"--set", "contrastive.one_per_task=true"});  // two tasks, four groups
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
}

TEST_F(Run, OfTheTeacherFindsItsVariants) {
  ASSERT_EQ(run({"--set", "policy.kind=teacher", "--set", "self_supervised.steps=0", "--set",
                 "comparison.samples=0", "--set", "comparison.bare_samples=0", "--set",
                 "comparison.greedy_samples=0"})
                .code,
            0);
  const auto listed = run_hone({"pool", "export", "--pool", pool()});
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("extern \\\"C\\\" __global__ void rows_0"));
  EXPECT_THAT(listed.out, Not(HasSubstr("unparsable")));
}

TEST_F(Run, ACorpusThatIsNotTimedIsOnlyVerified) {
  const std::string corpus = std::string(HONE_SOURCE_DIR) + "/configs/corpus";
  ASSERT_EQ(run({"--set", "corpus.folder=" + corpus, "--set", "corpus.per_task=6", "--set",
                 "corpus.timed=false"})
                .code,
            0);
  const json report = json::parse(run_hone({"report", run_folder().string(), "--json"}).out);
  const json& stage = report["stages"][0];
  EXPECT_EQ(stage["stage"], "corpus");
  EXPECT_EQ(stage["samples"], 24) << "on two types of device";
  EXPECT_GT(stage["ok"], 0);
  EXPECT_TRUE(stage["mean_log_speedup"].is_null());
  EXPECT_FALSE(report["stages"][1]["mean_log_speedup"].is_null());
  for (const json& t : report["tasks"]) EXPECT_EQ(t["best_in_corpus"], false);
  const auto verified = run_hone({"pool", "verify", "--pool", pool()});
  EXPECT_EQ(verified.code, 0) << verified.out;
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
    EXPECT_EQ(report["finished"], false);
    EXPECT_EQ(report["live"], false);
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
  // Slow devices keep the pool small, which each command below reads as a whole.
  const program p(
      endless({"--set", "simulated.a.measure_us=5000", "--set", "simulated.b.measure_us=5000"}));
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
  const auto ported = run_hone({"pool", "portability", "--pool", pool()});
  EXPECT_EQ(ported.code, 0) << ported.err;
  EXPECT_THAT(ported.out, HasSubstr("best variants of simulated-a"));
  EXPECT_THAT(ported.out, HasSubstr("best variants of simulated-b"));
  EXPECT_NE(run_hone({"pool", "portability", "--pool", pool(), "--devices", "simulated:a"}).code, 0)
      << "simulated devices run no program";
  EXPECT_EQ(run_hone({"pool", "verify", "--pool", pool()}).code, 0);
  EXPECT_GE(
      json_lines(run_hone({"pool", "export", "--pool", pool(), "--task", "softmax"}).out).size(),
      1U);
  const auto unknown = run_hone({"pool", "show", "zzzz", "--pool", pool()});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("zzzz"));
  for (const char* command : {"ls", "top", "export", "portability"}) {
    const auto no_task = run_hone({"pool", command, "--pool", pool(), "--task", "softmix"});
    EXPECT_EQ(no_task.code, 2) << command;
    EXPECT_THAT(no_task.err, HasSubstr("no task softmix (did you mean softmax?)"));
  }
  const auto no_type = run_hone({"pool", "ls", "--pool", pool(), "--device-type", "abacus"});
  EXPECT_EQ(no_type.code, 2);
  EXPECT_THAT(no_type.err, HasSubstr("simulated-a"));
  EXPECT_EQ(run_hone({"pool", "top", "--pool", run_folder().string()}).code, 0)
      << "a run's directory denotes its pool";
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

TEST_F(Run, StatusTellsWhereAStoppedRunHasGotTo) {
  program p(endless());
  ASSERT_TRUE(wait_for_versions(4));
  p.send(SIGKILL);
  ASSERT_TRUE(p.wait().has_value());
  const auto stopped = run_hone({"status", "--dir", run_folder().string()});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("this run was stopped or killed, in stage contrastive"));
  EXPECT_THAT(stopped.out, HasSubstr("softmax on simulated-a"));
  EXPECT_THAT(stopped.out, HasSubstr("hone run --dir " + run_folder().string() + " --resume"));
}

TEST_F(Run, StatusTellsThatARunHasFinished) {
  ASSERT_EQ(run().code, 0);
  const auto ended = run_hone({"status", "--dir", run_folder().string(), "--json"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const json status = json::parse(ended.out);
  EXPECT_EQ(status["live"], false);
  EXPECT_EQ(status["finished"], true);
  EXPECT_EQ(status["tasks"].size(), 4U);
  EXPECT_THAT(std::string(status["go_on"]), HasSubstr("--extend contrastive.steps="));
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

// Returns the niceness of all threads of a process whose names begin with `name`.
std::set<int> niceness_of_threads(pid_t process, const std::string& name) {
  std::set<int> all;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    if (!read_file(thread.path() / "comm").starts_with(name)) continue;
    const std::string stat = read_file(thread.path() / "stat");
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    const std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
    all.insert(std::stoi(words.at(16)));
  }
  return all;
}

TEST_F(Run, StoresWithLessPriorityThanItServesMessagesAlsoIfItIsResumed) {
  const int of_messages = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  if (of_messages > 9) GTEST_SKIP() << "there is no room for a lower priority";
  for (const bool is_resumed : {false, true}) {
    program p(is_resumed ? endless({"--resume"}) : endless());
    ASSERT_TRUE(wait_for_versions(is_resumed ? versions() + 2 : 2)) << p.out() << p.err();
    const std::set<int> of_storage = niceness_of_threads(p.id(), "rocksdb:");
    ASSERT_FALSE(of_storage.empty());
    EXPECT_GT(*of_storage.begin(), of_messages) << is_resumed;
    EXPECT_EQ(niceness_of_threads(p.id(), "caf.multiplexer"), std::set<int>{of_messages});
    p.send(SIGTERM);
    p.wait();
  }
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

}  // namespace
}  // namespace hone
