#include "policy/text/program_end.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hone {
namespace {

const std::string program =
    "## Code Implementation\n```cuda\nint x;\n```\n```python\ndef forward(x):\n    return x\n```";

TEST(ProgramEnd, IsTheFenceBehindThePythonBlock) {
  EXPECT_TRUE(ends_with_program(program));
  EXPECT_TRUE(ends_with_program(program + "\n\n  \n"));
  for (std::size_t length = 0; length < program.size(); ++length)
    EXPECT_FALSE(ends_with_program(program.substr(0, length))) << length;
  EXPECT_FALSE(ends_with_program(program + "\nThis works because"));
}

const std::string heading = "## Code Implementation\n";

TEST(ProgramEnd, IsBehindTheHeading) {
  const std::string block = "```python\nx\n```";
  EXPECT_FALSE(ends_with_program("## Algorithm Design\n" + block));
  EXPECT_FALSE(ends_with_program("```\n" + heading + "```\n" + block)) << "the heading is quoted";
  EXPECT_TRUE(ends_with_program(block + "\n##  Code  Implementation \n" + block));
  EXPECT_TRUE(ends_with_program(heading + "```Python title\nx\n```"));
}

TEST(ProgramEnd, IsNoFenceInsideOfABlockOrOfAnotherLanguage) {
  EXPECT_FALSE(ends_with_program(heading + "```cuda\nx\n```"));
  EXPECT_FALSE(ends_with_program(heading + "````python\nx\n```")) << "a longer fence is open";
  EXPECT_TRUE(ends_with_program(heading + "````python\nx\n````"));
  EXPECT_FALSE(ends_with_program(heading + "```python\nx\n```\n```")) << "another block begins";
  EXPECT_FALSE(ends_with_program(heading + "text with `python` and ```"));
  EXPECT_FALSE(ends_with_program(""));
}

}  // namespace
}  // namespace hone
