// Tests of runs that other processes join: nodes that die, freeze and come back, and heads that are
// resumed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "tests/support/json_lines.hpp"
#include "tests/support/nodes.hpp"

namespace hone {
namespace {

using namespace testing_support;
using json = nlohmann::json;
using testing::HasSubstr;

TEST_F(Nodes, AJoinedNodeTakesJobsAndItsDeathLosesNone) {
  program p(endless({"--set", "node.devices=[\"simulated:a\"]", "--set", "node.compilers=0"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run_folder() / "address"); }));
  // Nothing can be compiled until a node joins.
  program helper({hone_program(), "node", "--join", address(), "--devices",
                  "simulated:a,simulated:c", "--name", "helper"});
  ASSERT_TRUE(wait_for_versions(3)) << p.out() << helper.out() << helper.err();
  ASSERT_TRUE(eventually([&] {
    const std::string status = run_hone({"status", "--connect", address()}).out;
    return status.find("verifier helper simulated:a") != std::string::npos &&
           status.find("\n  simulated-c ") != std::string::npos;
  }));
  helper.send(SIGKILL);
  helper.wait();
  // The jobs of the killed node wait for the second one.
  program second({hone_program(), "node", "--join", address(), "--devices", "simulated:a", "--name",
                  "second"});
  const std::uint64_t then = versions();
  EXPECT_TRUE(wait_for_versions(then + 3)) << p.out() << second.out() << second.err();
  p.send(SIGKILL);
  p.wait();
  expect_nothing_lost();
}

TEST_F(Nodes, ANodeMayBeStartedBeforeItsRun) {
  const std::string port = std::to_string(free_port());
  program helper({hone_program(), "node", "--join", "127.0.0.1:" + port, "--devices", "simulated:a",
                  "--name", "early"});
  ASSERT_TRUE(
      eventually([&] { return helper.err().find("waiting for the run") != std::string::npos; }));
  const program p(endless({"--set", "node.devices=[\"simulated:a\"]", "--set", "node.compilers=0",
                           "--set", "node.port=" + port}));
  EXPECT_TRUE(wait_for_versions(2)) << p.out() << helper.out() << helper.err();
  EXPECT_THAT(helper.out(), HasSubstr("early works for the run"));
}

TEST_F(Nodes, ANodeWithoutDevicesCompilesForOtherNodes) {
  const program p(
      endless({"--set", "node.devices=[\"simulated:a\"]", "--set", "node.compilers=0"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run_folder() / "address"); }));
  program helper(
      {hone_program(), "node", "--join", address(), "--compilers", "2", "--name", "helper"});
  EXPECT_TRUE(wait_for_versions(3)) << p.out() << helper.out() << helper.err();
  EXPECT_THAT(helper.out(), HasSubstr("0 devices, 2 compilers"));
}

TEST_F(Nodes, SurvivesRandomBytesOnItsPort) {
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
  const auto status = run_hone({"status", "--connect", where});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(p.out(), HasSubstr("its first bytes are not Hone's"));
}

TEST_F(Nodes, ANodeLeavesWhenItsRunHasEnded) {
  const std::string port = std::to_string(free_port());
  program helper(node("127.0.0.1:" + port, "helper"));
  const auto ended = run({"--set", "node.port=" + port, "--set", "node.compilers=0"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(helper.wait(std::chrono::seconds(20)), 0) << helper.out() << helper.err();
  EXPECT_THAT(helper.out(), HasSubstr("has ended"));
}

// Counts the lines that say so in what a node has printed.
int times_joined_again(const std::string& printed) {
  const std::string words = "has joined the run again";
  int times = 0;
  for (std::size_t at = printed.find(words); at != std::string::npos;
       at = printed.find(words, at + words.size()))
    ++times;
  return times;
}

TEST_F(Nodes, ANodeComesBackToARunThatWasKilledAndResumed) {
  const std::string port = std::to_string(free_port());
  program helper(node("127.0.0.1:" + port, "helper"));
  for (int life = 0; life < 3; ++life) {
    std::vector<std::string> options = {"--set", "node.port=" + port};
    if (life > 0) options.emplace_back("--resume");
    program p(helpless(options));
    ASSERT_TRUE(wait_for_versions(versions() + 2)) << p.out() << p.err() << helper.out();
    // Groups that were judged before the kill may have sufficed for the versions.
    ASSERT_TRUE(eventually([&] { return times_joined_again(helper.out()) >= life; }))
        << helper.out();
    p.send(SIGKILL);
    p.wait();
  }
  EXPECT_TRUE(says(helper, "is lost"));
  EXPECT_THAT(helper.out(), testing::Not(HasSubstr("failed"))) << "it must keep its device";
  EXPECT_FALSE(helper.has_ended());
  expect_nothing_lost();
}

TEST_F(Nodes, ANodeFindsAHeadThatMovedByItsAddressFile) {
  const std::filesystem::path file = run_folder() / "address";
  program helper(node(file.string(), "helper"));
  for (const bool resumes : {false, true}) {
    program p(
        helpless(resumes ? std::vector<std::string>{"--resume"} : std::vector<std::string>{}));
    ASSERT_TRUE(wait_for_versions(versions() + 2)) << p.out() << p.err() << helper.out();
    p.send(SIGKILL);
    p.wait();
  }
}

TEST_F(Nodes, ANodeWhosePatienceEndsSaysWhy) {
  program p(helpless());
  program helper(node(address(), "helper", {"--patience", "1"}));
  ASSERT_TRUE(wait_for_versions(2));
  p.send(SIGKILL);
  EXPECT_NE(helper.wait(std::chrono::seconds(20)).value_or(0), 0);
  EXPECT_THAT(helper.err(), HasSubstr("nothing listens there"));
}

TEST_F(Nodes, ANodeThatFreezesIsLostAndComesBackByItself) {
  const std::vector<std::string> signs = {"--heartbeat", "0.1", "--silence", "0.6"};
  program p(helpless({"--set", "node.heartbeat_s=0.1", "--set", "node.silence_s=0.6"}));
  program frozen(node(address(), "frozen", signs));
  ASSERT_TRUE(wait_for_versions(versions() + 2)) << p.out() << frozen.out();
  frozen.send(SIGSTOP);
  EXPECT_TRUE(says(p, "frozen is gone")) << p.out();
  {
    program other(node(address(), "other", signs));
    EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << "its jobs went to another node";
  }
  frozen.send(SIGCONT);
  EXPECT_TRUE(says(frozen, "has joined the run again")) << frozen.out() << frozen.err() << p.out();
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << frozen.out();
  p.send(SIGKILL);
  p.wait();
  expect_nothing_lost();
}

TEST_F(Nodes, DevicesOfATypeAreScaledDownAndUpWithoutLosingJobs) {
  program p(helpless());
  program helper({hone_program(), "node", "--join", address(), "--devices",
                  "simulated:a,simulated:a,simulated:c", "--name", "helper"});
  ASSERT_TRUE(wait_for_versions(2)) << p.out() << helper.out();
  const auto scale = [&](const std::string& change) {
    return run_hone({"scale", run_folder().string(), change});
  };
  EXPECT_THAT(scale("simulated-a=1").out, HasSubstr("1 devices of type simulated-a at work"));
  EXPECT_TRUE(says(helper, "the device simulated:a has stopped work"));
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << helper.out();
  EXPECT_THAT(scale("simulated-a=9").out, HasSubstr("3 devices of type simulated-a at work; the"));
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << helper.out();
  EXPECT_THAT(scale("simulated-a=0").out, HasSubstr("0 devices"));
  EXPECT_THAT(scale("simulated-a=2").out, HasSubstr("2 devices"));
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << helper.out();
  EXPECT_EQ(scale("simulated-a=99999999999999999999").code, 2) << "and stops no device";
  EXPECT_THAT(scale("simulated=2").err, HasSubstr("more than one type"));
  EXPECT_THAT(scale("h200=2").err,
              HasSubstr("there is no pool h200, and no node has devices of such a type"));
  p.send(SIGTERM);
  EXPECT_EQ(p.wait(std::chrono::seconds(20)), 3) << p.out();
  expect_nothing_lost();
  const auto stats = run_hone({"pool", "stats", "--pool", pool(), "--json"});
  EXPECT_THAT(stats.out, testing::Not(HasSubstr("infrastructure"))) << "no job was lost for good";
}

TEST_F(Nodes, ANodeThatIsAskedToStopFinishesWhatItHasAndLeaves) {
  program p(helpless({"--set", "simulated.c.measure_us=1500000"}));
  program helper(node(address(), "helper", {"--devices", "simulated:c"}));
  ASSERT_TRUE(wait_for_versions(2)) << p.out() << helper.out();
  helper.send(SIGTERM);
  EXPECT_EQ(helper.wait(std::chrono::seconds(20)), 0) << helper.out() << helper.err();
  EXPECT_THAT(helper.out(), HasSubstr("helper finishes what it has and takes nothing new"));
  EXPECT_THAT(helper.out(), HasSubstr("the device simulated:c has stopped work"));
  EXPECT_THAT(helper.out(), HasSubstr("helper has left the run"));
  program second(node(address(), "second"));
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << second.out();
  p.send(SIGTERM);
  EXPECT_EQ(p.wait(std::chrono::seconds(20)), 3) << p.out();
  expect_nothing_lost();
}

TEST_F(Nodes, ASecondSignalEndsANodeThatStillWorks) {
  program p(helpless({"--set", "simulated.c.measure_us=60000000"}));
  program helper(node(address(), "helper", {"--devices", "simulated:c"}));
  const auto measures = [&] {
    const auto status = run_hone({"status", "--dir", run_folder().string(), "--json"});
    for (const json& one : json_lines(status.out)) {
      for (const json& actor : one["actors"]) {
        if (actor["name"] == "benchmarker helper simulated:c" && actor["in_flight"] > 0)
          return true;
      }
    }
    return false;
  };
  ASSERT_TRUE(eventually(measures)) << p.out() << helper.out();
  helper.send(SIGTERM);
  ASSERT_TRUE(says(helper, "helper finishes what it has"));
  EXPECT_FALSE(helper.wait(std::chrono::seconds(1))) << "the measurement takes a minute";
  helper.send(SIGTERM);
  EXPECT_EQ(helper.wait(std::chrono::seconds(5)), 130);
}

TEST_F(Nodes, SimulatedDevicesBehaveAsTheRunSays) {
  program p(helpless({"--set", "simulated.c.ok_share=0.0"}));
  program helper(node(address(), "helper", {"--devices", "simulated:c"}));
  std::string found;
  EXPECT_TRUE(eventually([&] {
    found =
        run_hone({"pool", "ls", "--pool", pool(), "--device-type", "simulated-c", "--json"}).out;
    return lines_with(found, "wrong_result") >= 5;
  })) << helper.out()
      << found;
  EXPECT_EQ(lines_with(found, "\"ok\""), 0) << found;
  p.send(SIGTERM);
  EXPECT_EQ(p.wait(std::chrono::seconds(20)), 3) << p.out();
}

TEST_F(Nodes, AProcessThatTakesTheNameOfANodeTakesItsPlace) {
  program p(helpless());
  program first(node(address(), "twin"));
  ASSERT_TRUE(says(first, "twin works for the run")) << first.err();
  program second(node(address(), "twin"));
  EXPECT_NE(first.wait(std::chrono::seconds(20)).value_or(0), 0) << first.out();
  EXPECT_THAT(first.err(), HasSubstr("another process has joined under this name"));
  EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << second.out();
}

}  // namespace
}  // namespace hone
