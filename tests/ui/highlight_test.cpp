#include "ui/code/highlight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/ui/markup.hpp"

namespace hone {
namespace {

using testing_support::hostile_texts;
using testing_support::parsed;

// Writes tokens as "kind:text", one per word.
std::string tokens(std::string_view source, code_language language) {
  constexpr std::string_view kinds = "-ktnscp";
  std::string all;
  for (const code_token& t : tokens_of(source, language)) {
    if (!all.empty()) all += ' ';
    all += kinds[static_cast<std::size_t>(t.kind)];
    all += ':' + std::string(source.substr(t.begin, t.end - t.begin));
  }
  return all;
}

std::string cuda(std::string_view source) { return tokens(source, code_language::cuda); }
std::string python(std::string_view source) { return tokens(source, code_language::python); }

TEST(TokensTest, OfCuda) {
  EXPECT_EQ(cuda("__global__ void f(const float* x)"), "k:__global__ t:void k:const t:float");
  EXPECT_EQ(cuda("x1 = 1.5e-3f + 0xFF + 1'000 - .5;"), "n:1.5e-3f n:0xFF n:1'000 n:.5");
  EXPECT_EQ(cuda("a // b\nc /* d\ne */ int"), "c:// b c:/* d\ne */ t:int");
  EXPECT_EQ(cuda(R"("a\"b" 'c' "d)"), R"(s:"a\"b" s:'c' s:"d)");
  EXPECT_EQ(cuda("\"open\nint"), "s:\"open t:int");
  EXPECT_EQ(cuda("R\"x(a\")\n)x\" int"), "s:R\"x(a\")\n)x\" t:int" + std::string());
  EXPECT_EQ(cuda("  # include <a.h> // b\n#pragma unroll\na # b"),
            "p:# include s:<a.h> c:// b p:#pragma");
  EXPECT_EQ(cuda("uint32_t x; interior"), "t:uint32_t");
}

TEST(TokensTest, OfPython) {
  EXPECT_EQ(python("def f(self, x: Tensor) -> int:  # c"), "k:def k:self t:Tensor t:int c:# c");
  EXPECT_EQ(python("@torch.jit.script\nx = 3 @ y"), "p:@torch.jit.script n:3");
  EXPECT_EQ(python("'''a\n'b''' f\"c\" rb'd' g'e'"), "s:'''a\n'b''' s:f\"c\" s:rb'd' s:'e'");
  EXPECT_EQ(python("\"\"\"open\nint"), "s:\"\"\"open\nint");
  EXPECT_EQ(python("'''a\\'''b'''"), "s:'''a\\'''b'''");
}

TEST(TokensTest, UnterminatedTokensEndWithTheSource) {
  for (const char* source : {"/* a", "\"a", "\"a\\", "'", "R\"(a", "R\"", "R\"(", "#",
                             "#include <a", "1e+", ".", "/", "'''", "''' \\", "@", "f'"}) {
    for (const code_language language : {code_language::cuda, code_language::python}) {
      for (const code_token& t : tokens_of(source, language)) {
        EXPECT_LE(t.end, std::string_view(source).size()) << source;
      }
    }
  }
}

TEST(TokensTest, AreInOrderAndCutNoCharacter) {
  std::vector<std::string> sources = hostile_texts();
  std::string mixed;
  for (const std::string& s : sources) mixed += s.substr(0, 500) + "\n";
  sources.push_back(mixed);
  for (const std::string& source : sources) {
    for (const code_language language : {code_language::cuda, code_language::python}) {
      std::size_t end = 0;
      for (const code_token& t : tokens_of(source, language)) {
        EXPECT_LE(end, t.begin);
        EXPECT_LT(t.begin, t.end);
        ASSERT_LE(t.end, source.size());
        end = t.end;
      }
    }
  }
}

TEST(TokensTest, TakeLinearTime) {
  // Openings that make a lexer quadratic if it searches for their ends repeatedly.
  for (const std::string opening :
       {"R\"x(", "/*", "'''", "\"\\\n", "R\"(a)\"", "'''a'''", "#include <", "((((", "1e+"}) {
    std::string source;
    while (source.size() < (4U << 20U)) source += opening;
    const auto begin = std::chrono::steady_clock::now();
    tokens_of(source, code_language::cuda);
    tokens_of(source, code_language::python);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(taken.count(), 5) << opening;
  }
}

TEST(HighlightedCodeTest, NumbersLinesAndColorsTokens) {
  EXPECT_EQ(highlighted_code("int x;\n", {}).str(),
            "<pre class=\"code\"><span class=\"line\" id=\"L1\"><a class=\"number\" "
            "href=\"#L1\">1</a><span class=\"source\"><span class=\"t\">int</span> x;\n"
            "</span></span></pre>");
}

TEST(HighlightedCodeTest, TokensThatSpanLinesAreColoredInEachLine) {
  const std::string code = highlighted_code("/* a\r\nb */ int", {}).str();
  EXPECT_NE(code.find("<span class=\"c\">/* a</span>\n"), code.npos) << code;
  EXPECT_NE(code.find("<span class=\"c\">b */</span> <span class=\"t\">int</span>"), code.npos);
}

TEST(HighlightedCodeTest, KeepsTheWholeText) {
  const std::string source =
      "#pragma once\n\nint f() { return '\"'; } // <b>\n/* x\n */\tfloat y;\n";
  std::string expected;
  int number = 0;
  for (const std::string_view line : lines_of_code(source)) {
    expected += std::to_string(++number) + std::string(line) + "\n";
  }
  EXPECT_EQ(parsed(highlighted_code(source, {}).str()).text, expected);
}

TEST(HighlightedCodeTest, MessagesFollowTheirLine) {
  code_options options;
  options.anchor_prefix = "cuda-";
  options.messages = {{9, "far"}, {2, "expected ';'\n  <x>"}, {0, "general"}, {1, "first"}};
  const auto found = parsed(highlighted_code("a\nb\nc", options).str());
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.text, "1a\nfirst\n2b\nexpected ';'\n  <x>\n3c\nline 9: far\ngeneral\n");
  EXPECT_EQ(found.links, (std::vector<std::string>{"#cuda-1", "#cuda-2", "#cuda-3"}));
}

TEST(HighlightedCodeTest, SaysHowMuchIsNotShown) {
  code_options options;
  options.max_lines = 10;
  options.messages.assign(1000, {3, "again"});
  std::string source = std::string(256 * 1024, 'x') + "\n";
  for (int i = 0; i < 100'000; ++i) source += "int y;\n";
  const std::string code = highlighted_code(source, options).str();
  EXPECT_LT(code.size(), 30'000U);
  EXPECT_NE(code.find("… 258,048 more bytes"), code.npos);
  EXPECT_NE(code.find("… 99,991 more lines"), code.npos);
  EXPECT_NE(code.find("… 800 more messages"), code.npos);
  EXPECT_EQ(parsed(code).error, "");
}

TEST(HighlightedCodeTest, HostileSourcesAndMessagesStayText) {
  for (const std::string& hostile : hostile_texts()) {
    for (const code_language language : {code_language::cuda, code_language::python}) {
      const auto found = parsed(
          highlighted_code(hostile, {language, "L", 500, {{1, hostile}, {1U << 30U, hostile}}})
              .str());
      EXPECT_EQ(found.error, "") << hostile.substr(0, 80);
    }
  }
  EXPECT_EQ(highlighted_code("", {}).str(), "<pre class=\"code\"></pre>");
  EXPECT_EQ(parsed(highlighted_code("a\nb", {code_language::cuda, "L", 0, {}}).str()).text,
            "… 2 more lines\n");
}

}  // namespace
}  // namespace hone
