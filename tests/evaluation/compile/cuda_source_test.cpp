#include "evaluation/compile/cuda_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts(std::string_view source) {
  std::vector<std::string> all;
  for (const cuda_token& t : tokenize(source)) all.emplace_back(t.text);
  return all;
}

TEST(Tokenizer, SplitsCppIntoTokens) {
  EXPECT_THAT(
      texts("a+=0x1F'00ULL; s::t(1.5e-3f);"),
      ElementsAre("a", "+", "=", "0x1F'00ULL", ";", "s", "::", "t", "(", "1.5e-3f", ")", ";"));
}

TEST(Tokenizer, MakesOneTokenOfEveryLiteral) {
  const std::string source = R"~(x = "asm \" /* "; y = '"'; z = R"d(asm ")" )d";)~";
  EXPECT_THAT(texts(source), ElementsAre("x", "=", R"("asm \" /* ")", ";", "y", "=", R"('"')", ";",
                                         "z", "=", R"~(R"d(asm ")" )d")~", ";"));
}

TEST(Tokenizer, TakesLineNumbersFromLineMarkers) {
  const auto tokens = tokenize("a\n# 7 \"cuda\"\nb\n\nc");
  EXPECT_EQ(tokens[0].line, 1);
  EXPECT_EQ(tokens[1].line, 7);
  EXPECT_EQ(tokens[2].line, 9);
}

TEST(Includes, AreBlankedInPlaceIfAccepted) {
  const auto scan =
      take_out_includes("#include <cuda_runtime.h>\n  #  include \"math.h\" // for expf\nint x;\n");
  EXPECT_TRUE(scan.refused.empty());
  EXPECT_EQ(scan.text.find("include"), std::string::npos);
  EXPECT_EQ(std::count(scan.text.begin(), scan.text.end(), '\n'), 3);
}

TEST(Includes, AreReportedWithTheirLineIfRefused) {
  const auto scan =
      take_out_includes("#include <cmath>\n#include <cuda_fp16.h>\n#include \"/etc/hostname\"\n");
  ASSERT_EQ(scan.refused.size(), 2U);
  EXPECT_EQ(scan.refused[0].line, 2);
  EXPECT_EQ(scan.refused[0].name, "cuda_fp16.h");
  EXPECT_EQ(scan.refused[1].name, "/etc/hostname");
}

TEST(Includes, AreNotFoundInCommentsAndStrings) {
  const auto scan = take_out_includes(
      "/*\n#include <stdio.h>\n*/\nconst char* s = R\"x(\n#include <stdio.h>\n)x\";\n// "
      "\"\n#include <math.h>\n");
  EXPECT_TRUE(scan.refused.empty());
  EXPECT_NE(scan.text.find("stdio.h"), std::string::npos);
  EXPECT_EQ(scan.text.find("math.h"), std::string::npos);
}

TEST(Kernels, AreFoundInEveryFormOfDeclaration) {
  const auto names = declared_kernels(tokenize(R"(
extern "C" __global__ void plain(float* a) {}
__global__ void __launch_bounds__(256, 2) bounded(int n) {}
template <int N> __global__ __launch_bounds__(N) static void templated(float* a) { helper(a); }
__device__ float helper(float* a);
namespace inner { __global__ void nested() {} }
)"));
  EXPECT_THAT(names, ElementsAre("bounded", "nested", "plain", "templated"));
}

TEST(Kernels, AreNamedByLaunchesWithTheirArguments) {
  const std::set<std::string, std::less<>> kernels = {"scale", "tiled"};
  EXPECT_TRUE(names_a_kernel("scale", kernels));
  EXPECT_TRUE(names_a_kernel("tiled<16, float>", kernels));
  EXPECT_TRUE(names_a_kernel("inner::scale", kernels));
  EXPECT_FALSE(names_a_kernel("other", kernels));
  EXPECT_FALSE(names_a_kernel("scale; evil()", kernels));
  EXPECT_FALSE(names_a_kernel("tiled<(system(\"x\"), 1)>", kernels));
  EXPECT_FALSE(names_a_kernel("", kernels));
}

struct forbidden_text {
  const char* source;
  const char* message;
};

// Prints the source, which becomes part of the test's name in CTest.
void PrintTo(const forbidden_text& text, std::ostream* out) {
  *out << testing::PrintToString(text.source);
}

class Forbidden : public testing::TestWithParam<forbidden_text> {};

TEST_P(Forbidden, IsFoundWithItsLine) {
  const std::string source = std::string("int a;\n") + GetParam().source;
  const auto problem = find_forbidden(tokenize(source));
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->line, 2);
  EXPECT_THAT(problem->message, testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, Forbidden,
    testing::Values(
        forbidden_text{"asm(\"nop\");", "assembler"},
        forbidden_text{"__asm__ volatile(\"nop\");", "assembler"},
        forbidden_text{"int x __asm(\"y\");", "assembler"},
        forbidden_text{"__attribute__((section(\"x\"))) int a;", "attribute 'section'"},
        forbidden_text{"__attribute__((constructor)) void f();", "attribute 'constructor'"},
        forbidden_text{"__attribute__((unused, alias(\"f\"))) void g();", "attribute 'alias'"},
        forbidden_text{"__attribute__((aligned(__attribute__((x)) 4))) int a;",
                       "attribute '__attribute__'"},
        forbidden_text{"[[gnu::section(\"x\")]] int a;", "attribute 'gnu'"},
        forbidden_text{"[[maybe_unused, gnu::section(\"x\")]] int a;", "attribute 'gnu'"},
        forbidden_text{"<:<:gnu::section(\"x\"):>:> int a;", "digraphs"},
        forbidden_text{"auto s = R\"a(\n#pragma )a\"; int x;\n)a\";", "span lines"},
        forbidden_text{"[[using gnu: constructor]] void f();", "attribute 'using'"},
        forbidden_text{"hone::module m;", "reserved"},
        forbidden_text{"int hone_module;", "reserved"}));

TEST(Forbidden, HarmlessAttributesAndWordsPass) {
  EXPECT_FALSE(
      find_forbidden(tokenize("struct __attribute__((aligned(16), packed)) v { float x; }; "
                              "[[maybe_unused]] int plasm; const char* s = \"asm\";")));
}

// With time that grows with the square of the length, each of them would take longer than a test
// may.
TEST(HostileText, TakesTimeLinearInItsLength) {
  constexpr std::size_t length = 8U << 20U;
  for (const char* part : {"__attribute__(((", "[[const,", " ", "R\"x(", "/* ",
                           "__global__ void k(", "__global__ __( "}) {
    std::string text;
    while (text.size() < length) text += part;
    EXPECT_TRUE(take_out_includes(text).refused.empty()) << part;
    EXPECT_EQ(blank_comments(text).size(), text.size()) << part;
    const auto tokens = tokenize(text);
    const bool has_attributes = text.starts_with("__attribute__") || text.starts_with("[[");
    EXPECT_EQ(find_forbidden(tokens).has_value(), has_attributes) << part;
    EXPECT_LE(declared_kernels(tokens).size(), 1U) << part;
  }
  const std::string long_delimiter = "R\"" + std::string(length / 2, ')') + "(";
  EXPECT_EQ(tokenize(long_delimiter + std::string(length / 2, ')')).size(), 1U);
}

}  // namespace
}  // namespace hone
