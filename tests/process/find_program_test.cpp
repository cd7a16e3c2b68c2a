#include "process/find_program.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hone {
namespace {

TEST(FindProgram, LooksAWordUpInPathAndLeavesAPathAsItIs) {
  EXPECT_TRUE(find_program("sh").ends_with("/sh"));
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_THROW(find_program("hone-has-no-such-program"), std::runtime_error);
  EXPECT_THROW(find_program("/bin/hone-has-no-such-program"), std::runtime_error);
}

}  // namespace
}  // namespace hone
