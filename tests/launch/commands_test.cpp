// Tests of the program's commands that need no run, and of commands that are refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "tests/support/program.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::run_hone;

TEST(Commands, StatusOfAnUnreachableAddressIsAnError) {
  const auto gone = run_hone({"status", "--connect", "127.0.0.1:9"});
  EXPECT_EQ(gone.code, 2);
  EXPECT_THAT(gone.err, HasSubstr("cannot be reached"));
}

TEST(Commands, TheVersionNamesWhatDecidesCompatibility) {
  const auto version = run_hone({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out,
              testing::ContainsRegex("hone [0-9]+\\.[0-9]+\\.[0-9]+ \\(revision [0-9a-z]+\\)\n"
                                     "schema [0-9]+, judge [0-9]+, pool format [0-9]+\n"
                                     "LibTorch [0-9.]+, CUDA [0-9.]+\n"));
}

TEST(Commands, OutputThatCannotBeWrittenIsAnError) {
  testing_support::program full(
      {"/bin/sh", "-c", "'" + testing_support::hone_program() + "' --version > /dev/full"});
  EXPECT_EQ(full.wait(std::chrono::seconds(20)), 2);
  EXPECT_THAT(full.err(), HasSubstr("standard output"));
}

TEST(Commands, AnUnknownCommandIsNamed) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"frob"}, {"pool", "frob"}}) {
    const auto unknown = run_hone(words);
    EXPECT_EQ(unknown.code, 2);
    EXPECT_THAT(unknown.err, HasSubstr("'frob' is not a command"));
  }
}

TEST(Commands, WrongUsageSaysHowTheCommandIsUsed) {
  const auto refused = run_hone({"pool", "show", "--pool", "nowhere"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("id"), HasSubstr("hone pool show"),
                                          HasSubstr("hone pool show --help tells more")));
  const auto no_form = run_hone({"export", "v.md", "v.py", "--task", "softmax"});
  EXPECT_EQ(no_form.code, 2);
  EXPECT_THAT(no_form.err, HasSubstr("--as torch or --as onefile.cu"));
}

TEST(Commands, ANegativeCountIsRefused) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"pool", "top", "--pool", "nowhere", "-n", "-3"},
        {"pool", "ls", "--pool", "nowhere", "--limit", "-1"},
        {"eval", "softmax", "nothing.md", "--seed", "-4"},
        {"task", "synthesise", "--out", "nowhere", "--count", "-2"}}) {
    const auto refused = run_hone(words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("'" + words.back() + "' is negative")) << words[1];
  }
}

TEST(Commands, UiRefusesWrongUsageAndAMissingFolderAsOthersDo) {
  const auto usage = run_hone({"ui", "nowhere", "--port", "1"});
  EXPECT_EQ(usage.code, 2);
  EXPECT_THAT(usage.err, HasSubstr("hone ui --help tells more"));
  const auto missing = run_hone({"ui", "/nonexistent/run"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("/nonexistent/run"));
}

TEST(Commands, ATaskIsCheckedOnACoreThatOthersUse) {
  const auto checked = run_hone({"task", "check", "softmax", "--share-cores"});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("softmax.toml: ok"));
}

TEST(Commands, AWrongAddressInAnOverrideIsBlamedOnTheOverride) {
  for (const std::string key : {"serve.listen", "node.listen", "node.metrics"}) {
    const auto refused = run_hone({"serve", "--set", key + "=127.0.0.1:99999"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--set " + key +
                                       "=127.0.0.1:99999: '127.0.0.1:99999': "
                                       "99999 is not a port number"));
  }
}

TEST(Commands, ANodeWithoutDevicesNeedsTheCudaToolchain) {
  setenv("HONE_NVRTC", "/nonexistent/hone-nvrtc", 1);
  const auto refused = run_hone({"node", "--join", "127.0.0.1:9"});
  unsetenv("HONE_NVRTC");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("hone-nvrtc"));
}

TEST(Commands, ANodeWithoutDevicesAndCompilersIsRefused) {
  const auto refused = run_hone({"node", "--join", "127.0.0.1:9", "--compilers", "0"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("without devices"));
}

TEST(Commands, ANodeThatNeedNotWaitSaysAtOnceThatThereIsNoRun) {
  const auto begin = std::chrono::steady_clock::now();
  const auto refused =
      run_hone({"node", "--join", "127.0.0.1:9", "--devices", "simulated:a", "--wait", "0"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("nothing listens there"));
}

TEST(Commands, DevicesListsTheCpuAndTheGpusOrWhyThereAreNone) {
  const auto listed = run_hone({"devices"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_THAT(listed.out, HasSubstr("cpu"));
  EXPECT_THAT(listed.out, testing::AnyOf(HasSubstr("cuda:0"), HasSubstr("no CUDA device: ")));
}

TEST(Commands, ANodeWithoutAnIdentityJoinsLoopbackAddressesOnly) {
  for (const char* address : {"192.0.2.1:4000", "127.example.com:4000", "0.0.0.0:4000"}) {
    const auto refused = run_hone({"node", "--join", address, "--devices", "simulated:a"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("need an identity")) << address;
  }
}

}  // namespace
}  // namespace hone
