// Commands as users meet them where there is no run: what is asked for in vain, and what is there
// without one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/program.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::run_hone;

TEST(Commands, StatusOfWhatIsNotThereIsAnError) {
  const auto gone = run_hone({"status", "--connect", "127.0.0.1:9"});
  EXPECT_EQ(gone.code, 2);
  EXPECT_THAT(gone.err, HasSubstr("cannot be reached"));
}

TEST(Commands, AWordThatIsNoCommandIsNamed) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"frob"}, {"pool", "frob"}}) {
    const auto unknown = run_hone(words);
    EXPECT_EQ(unknown.code, 2);
    EXPECT_THAT(unknown.err, HasSubstr("'frob' is not a command"));
  }
}

TEST(Commands, ANodeThatCouldOnlyCompileAndCannotIsRefused) {
  setenv("HONE_NVRTC", "/nonexistent/hone-nvrtc", 1);
  const auto refused = run_hone({"node", "--join", "127.0.0.1:9"});
  unsetenv("HONE_NVRTC");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("hone-nvrtc"));
}

TEST(Commands, ANodeWithNothingToDoIsRefused) {
  const auto refused = run_hone({"node", "--join", "127.0.0.1:9", "--compilers", "0"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("without devices"));
}

TEST(Commands, DevicesAreListedOrSaidToBeMissing) {
  const auto listed = run_hone({"devices"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_THAT(listed.out, HasSubstr("cpu"));
  EXPECT_THAT(listed.out, testing::AnyOf(HasSubstr("cuda:0"), HasSubstr("no CUDA device: ")));
}

TEST(Commands, OnlyLoopbackAddressesCanBeJoined) {
  const auto refused = run_hone({"node", "--join", "192.0.2.1:4000", "--devices", "simulated:a"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("loopback"));
}

}  // namespace
}  // namespace hone
