#include "evaluation/compile/cuda/diagnostics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace hone {
namespace {

TEST(CudaDiagnostics, NameTheBlocksLinesAndLeaveOutOtherText) {
  EXPECT_EQ(tidy_cuda_diagnostics("cuda(4): error: identifier \"a\" is undefined\n"
                                  "    y[0] = a;\n           ^\n\n"
                                  "launch(2): error: no such kernel\n"
                                  "/usr/include/secret.h(7): catastrophic error: cannot open\n"
                                  "1 error detected in the compilation of \"hone.cu\".\n",
                                  ""),
            "cuda:4: error: identifier \"a\" is undefined\nlaunch:2: error: no such kernel\n"
            "cuda: in a header: catastrophic error: cannot open");
}

TEST(CudaDiagnostics, OfTheAssemblerNameTheBlocksLineIfThePtxHasIt) {
  const std::string log =
      "ptxas application ptx input, line 3; error   : Unknown modifier '.bar'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n";
  EXPECT_EQ(tidy_cuda_diagnostics(log, "\t.loc\t1 7 3\n\n\tfoo.bar;\n\t.file\t1 \"cuda\"\n"),
            "cuda:7: error: in assembler: Unknown modifier '.bar'");
  EXPECT_EQ(tidy_cuda_diagnostics(log, ""), "cuda: error: in assembler: Unknown modifier '.bar'");
  EXPECT_EQ(tidy_cuda_diagnostics("ptxas fatal   : Ptx assembly aborted due to errors\n", ""),
            "cuda: ptxas fatal   : Ptx assembly aborted due to errors");
}

TEST(CudaDiagnostics, AreAtMostTwelveOfLimitedLength) {
  std::string log;
  for (int i = 0; i < 100; ++i) log += "cuda(1): error: " + std::string(5000, 'x') + "\n";
  const std::string tidy = tidy_cuda_diagnostics(log, "");
  EXPECT_EQ(std::count(tidy.begin(), tidy.end(), '\n'), 11);
  EXPECT_LT(tidy.size(), 12U * 401);
}

TEST(FirstLogLine, DoesNotNameFoldersOfTheMachine) {
  EXPECT_EQ(first_log_line("cannot open /home/me/cuda/x.h or /tmp/y: gone\nmore"),
            "cannot open x.h or y: gone");
  EXPECT_EQ(first_log_line(""), "");
  EXPECT_EQ(first_log_line(std::string(100'000, '/')), "");
}

}  // namespace
}  // namespace hone
