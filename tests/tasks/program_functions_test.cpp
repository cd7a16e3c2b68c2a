#include "tasks/program_functions.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hone {
namespace {

TEST(ProgramFunctions, ImportsAndDocstringsBecomeEmptyLines) {
  EXPECT_EQ(functions_of_program("\"\"\"What the\nmodule does.\"\"\"\n"
                                 "import torch\n"
                                 "from typing import List  # used below\n"
                                 "def forward(x: Tensor) -> Tensor:\n"
                                 "    '''Doubles x.'''\n"
                                 "    return x * 2\n"),
            "\n\n\n\ndef forward(x: Tensor) -> Tensor:\n    \n    return x * 2\n");
}

TEST(ProgramFunctions, ConstantsTakeThePlaceOfTheirNames) {
  EXPECT_EQ(functions_of_program("BLOCK = 256\n"
                                 "WIDE: int = 4 * BLOCK  # elements\n"
                                 "NAME = \"scale\"\n"
                                 "def forward(x: Tensor, n: int = BLOCK) -> Tensor:\n"
                                 "    launch(NAME, [n // WIDE], [BLOCK], x, f(BLOCK=1), x.BLOCK)\n"
                                 "    return x  # BLOCK\n"),
            "\n\n\n"
            "def forward(x: Tensor, n: int = 256) -> Tensor:\n"
            "    launch(\"scale\", [n // (4*256)], [256], x, f(BLOCK=1), x.BLOCK)\n"
            "    return x  # BLOCK\n");
  EXPECT_EQ(functions_of_program("EPS = 1e-5\nSCALE = math.sqrt(2.0)\nKIND = torch.float16\n"
                                 "def f(x: Tensor):\n    return (x.to(KIND) + EPS) * SCALE\n"),
            "\n\n\ndef f(x: Tensor):\n    return (x.to((torch.float16)) + (1e-5)) * "
            "(math.sqrt(2.0))\n");
}

TEST(ProgramFunctions, ConstantsMeanWhatTheyMeanInPython) {
  EXPECT_EQ(functions_of_program("A = 0xFE\nB = 1_024\nC = A + B\ndef f(x):\n    return x + C\n"),
            "\n\n\ndef f(x):\n    return x + (254+1024)\n");
  EXPECT_EQ(functions_of_program("EPS = 1e-5\ndef g(x, EPS: float = EPS):\n    return x + EPS\n"),
            "\ndef g(x, EPS: float = (1e-5)):\n    return x + EPS\n");
  for (const std::string other :
       {"N = 2 ** 8\n", "N = 4\nN = 2\n", "Z = torch.zeros\nW = Z([4])\n", "M = 4\nN = 2 M\n"}) {
    const std::string text = other + "def f(x):\n    return x + N + W\n";
    EXPECT_NE(functions_of_program(text).find("x + N + W"), std::string::npos) << other;
  }
}

TEST(ProgramFunctions, ANameThatExistsAnywayKeepsItsPlace) {
  EXPECT_EQ(functions_of_program("Tensor = torch.Tensor\ndef f(x: Tensor):\n    return x\n"),
            "\ndef f(x: Tensor):\n    return x\n");
}

TEST(ProgramFunctions, DecoratorsThatChangeNothingBecomeEmptyLines) {
  EXPECT_EQ(functions_of_program("@torch.no_grad()\ndef f(x):\n    return x\n"),
            "\ndef f(x):\n    return x\n");
}

TEST(ProgramFunctions, NamesThatAFunctionBindsItselfStay) {
  const std::string own =
      "def f(a, n: int):\n    b, c = a, n\n    for i in range(n):\n        c += i\n"
      "    d: int = c\n    return b[d]\n";
  EXPECT_EQ(functions_of_program("n = 1\na = 2\nb = 3\nc = 4\nd = 5\ni = 6\n" + own),
            "\n\n\n\n\n\n" + own);
  EXPECT_EQ(functions_of_program("n = 1\ndef f(x):\n    if x > n:\n        x[n] = 2\n    return x\n"
                                 "def g(n: int):\n    return n\n"),
            "\ndef f(x):\n    if x > 1:\n        x[1] = 2\n    return x\n"
            "def g(n: int):\n    return n\n");
}

TEST(ProgramFunctions, OtherStatementsStay) {
  for (const std::string text :
       {"TABLE = torch.zeros(4)\n", "A = B = 1\n", "A, B = 1, 2\n", "print(1)\n", "N = 1 2\n",
        "N = open('x')\n", "N =\n", "N: int\n", "x = '''a\nb'''\n", "@torch.jit.ignore\n", "'",
        "'abc\"\n", "return\"s\"\n"})
    EXPECT_EQ(functions_of_program(text), text.ends_with('\n') ? text : text + "\n");
}

TEST(ProgramFunctions, ConstantsOfConstantsDoNotGrowWithoutBound) {
  std::string text = "a0 = 1 + 1\n";
  for (int i = 1; i < 200; ++i) {
    const std::string last = "a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + " = " + last;
    text += " * " + last + "\n";
  }
  text += "def f(x):\n    return x";
  for (int i = 0; i < 10000; ++i) text += " + a7";
  EXPECT_LT(functions_of_program(text).size(), text.size() + (64U << 10U) + 1000);
}

TEST(ProgramFunctions, LongTextsTakeLittleTime) {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string part :
       {"'", "\"\"\"", "(", "a = 1\n", "\\\n", "# ", "f'", "1.", "for a ", "=="}) {
    std::string text = "def f():\n    ";
    while (text.size() < 256 * 1024) text += part;
    functions_of_program(text);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace hone
