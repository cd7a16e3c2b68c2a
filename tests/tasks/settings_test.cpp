#include "tasks/settings.hpp"

#include <gtest/gtest.h>

#include "tasks/format_error.hpp"

namespace hone {
namespace {

TEST(Settings, AllKeysParse) {
  const settings s = parse_settings(
      "tf32 = true\nfast_math = true\nmax_registers = 64\ncudnn_benchmark = true\ncuda_graph = "
      "true\n");
  EXPECT_TRUE(s.tf32 && s.fast_math && s.cudnn_benchmark && s.cuda_graph);
  EXPECT_EQ(s.max_registers, 64);
}

TEST(Settings, PrintCanonically) {
  EXPECT_EQ(print_settings(parse_settings("tf32 = true\nfast_math = true # why not\n")),
            "fast_math = true\ntf32 = true\n");
  EXPECT_EQ(print_settings(parse_settings("fast_math = false")), "");
  const settings s = parse_settings("max_registers = 32\ncuda_graph = true");
  EXPECT_EQ(parse_settings(print_settings(s)), s);
}

TEST(Settings, RefuseUnknownKeysAndWrongTypes) {
  for (const char* bad : {"fastmath = true", "fast_math = 1", "max_registers = true",
                          "max_registers = 1000", "fast_math =", "[a]\nb = 1"}) {
    EXPECT_THROW(parse_settings(bad), std::runtime_error) << bad;
  }
}

// The parser calls itself for each part of a dotted key, in the process that judges.
TEST(Settings, RefuseABlockThatWouldOverflowTheStack) {
  std::string dots = "a";
  while (dots.size() < 200'000) dots += ".a";
  EXPECT_THROW(parse_settings(dots + " = 1\n"), format_error);
}

}  // namespace
}  // namespace hone
