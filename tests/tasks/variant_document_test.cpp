#include "tasks/variant_document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using testing::HasSubstr;

const std::string sample = R"(## Performance Analysis
The second is faster.
## Algorithm Design
Scale rows.
## Code Implementation
```toml
fast_math = true
```
```cuda
extern "C" __global__ void k(float* a) {}
```
```python
def forward(A: Tensor) -> Tensor:
    return A
```
)";

variant_document parsed(std::string_view text) {
  auto result = parse_variant_document(text);
  if (auto* problem = std::get_if<parse_problem>(&result)) {
    ADD_FAILURE() << to_string(*problem);
    return {};
  }
  return std::get<variant_document>(std::move(result));
}

std::string problem_of(std::string_view text) {
  auto result = parse_variant_document(text);
  const auto* problem = std::get_if<parse_problem>(&result);
  return problem != nullptr ? to_string(*problem) : "no problem";
}

std::string with_code(const std::string& code) { return "## Code Implementation\n" + code; }
const std::string python = "```python\ndef forward(a: Tensor) -> Tensor:\n    return a\n```\n";

TEST(VariantDocument, ReadsEveryPart) {
  const variant_document d = parsed(sample);
  EXPECT_EQ(d.analysis, "The second is faster.");
  EXPECT_EQ(d.design, "Scale rows.");
  EXPECT_TRUE(d.options.fast_math);
  EXPECT_EQ(d.cuda, "extern \"C\" __global__ void k(float* a) {}\n");
  EXPECT_EQ(d.python, "def forward(A: Tensor) -> Tensor:\n    return A\n");
  EXPECT_EQ(d.cuda_line, 10);
  EXPECT_EQ(d.python_line, 13);
}

TEST(VariantDocument, PrintsBackUnchanged) {
  EXPECT_EQ(print_variant_document(parsed(sample)), sample);
}

TEST(VariantDocument, WindowsLineEndsAreLineEnds) {
  std::string text;
  for (const char c : sample) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(identify_variant(task_id{1, 2}, parsed(text)),
            identify_variant(task_id{1, 2}, parsed(sample)));
}

TEST(VariantDocument, ProseAroundTheBlocksIsIgnored) {
  const variant_document d =
      parsed("# Title\n\ntext\n\n##   Code \t Implementation  ##\nHere it is, see `code`:\n\n" +
             python + "\nDone.\n\n## Notes\n```bash\nrm\n```\n");
  EXPECT_EQ(d.python, "def forward(a: Tensor) -> Tensor:\n    return a\n");
}

TEST(VariantDocument, OnlyALevelTwoHeadingEndsTheSection) {
  EXPECT_EQ(parsed(with_code("### The host program\n" + python)).python_line, 4);
  EXPECT_THAT(problem_of(with_code("## Then\n" + python)), HasSubstr("no python block"));
  EXPECT_THAT(problem_of(with_code("Then\n---\n" + python)), HasSubstr("no python block"))
      << "an underlined heading is one of level two";
}

TEST(VariantDocument, HeadingsInsideFencesAreText) {
  const variant_document d =
      parsed(with_code("```cuda\n## Code Implementation\n## End\n```\n" + python));
  EXPECT_EQ(d.cuda, "## Code Implementation\n## End\n");
  EXPECT_EQ(parsed("```\n## Code Implementation\n```\n" + sample).analysis,
            "The second is faster.");
}

TEST(VariantDocument, LongerAndTildeFencesMayContainShorterFences) {
  EXPECT_EQ(parsed(with_code("````cuda\n```python\nnot this\n```\n````\n" + python)).cuda,
            "```python\nnot this\n```\n");
  EXPECT_EQ(
      parsed(with_code("~~~ PYTHON extra words\ndef forward(a: Tensor): return a\n~~~\n")).python,
      "def forward(a: Tensor): return a\n");
  variant_document d = parsed(sample);
  d.cuda = "// ```` four\n";
  EXPECT_EQ(parsed(print_variant_document(d)).cuda, d.cuda);
}

TEST(VariantDocument, BlocksInListsBelongToTheSection) {
  EXPECT_EQ(parsed(with_code("1. the host program\n   ```python\n   def forward(a: Tensor):\n      "
                             " return a\n   ```\n"))
                .python,
            "def forward(a: Tensor):\n    return a\n");
}

TEST(VariantDocument, IndentedCodeIsProse) {
  EXPECT_EQ(parsed(with_code("\n    ```cuda\n    not a fence\n    ```\n\n" + python)).cuda, "");
}

struct bad_document {
  const char* what;
  std::string text;
  const char* message;
};

class VariantDocumentRefuses : public testing::TestWithParam<bad_document> {};

TEST_P(VariantDocumentRefuses, WithAMessageThatSaysWhy) {
  EXPECT_THAT(problem_of(GetParam().text), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, VariantDocumentRefuses,
    testing::Values(
        bad_document{"empty", "", "no '## Code Implementation' section"},
        bad_document{"no code section", "## Code\n" + python,
                     "no '## Code Implementation' section"},
        bad_document{"two code sections", with_code(python) + with_code(python),
                     "line 6: a second '## Code Implementation' section"},
        bad_document{"two python blocks", with_code(python + python),
                     "line 6: a second python block"},
        bad_document{"two cuda blocks", with_code("```cuda\n```\n```cuda\n```\n" + python),
                     "line 4: a second cuda block"},
        bad_document{"no python block", with_code("```cuda\n```\n"),
                     "line 1: the code section has no python block"},
        bad_document{"another language", with_code(python + "```bash\n```\n"),
                     "line 6: a fenced block of language 'bash'"},
        bad_document{"no language", with_code(python + "```\n```\n"),
                     "line 6: a fenced block without a language"},
        bad_document{"open fence", with_code(python + "```cuda\nx\n"),
                     "line 6: a fenced block that is never closed"},
        bad_document{"open fence with a deeper one",
                     with_code("```python\ndef forward(a): return a\n    ```\n"),
                     "line 2: a fenced block that is never closed"},
        bad_document{"fence opened with more", with_code("````python\nx\n```\n"),
                     "line 2: a fenced block that is never closed"},
        bad_document{"unknown setting", with_code("```toml\nfaster = true\n```\n" + python),
                     "faster: unknown key"},
        bad_document{"wrong setting", with_code("```toml\nfast_math = \"yes\"\n```\n" + python),
                     "fast_math: is a string"},
        bad_document{"no toml", with_code("```toml\nfast_math\n```\n" + python), "not valid TOML"},
        bad_document{"latin-1", with_code("caf\xe9\n" + python), "line 2: not valid UTF-8"},
        bad_document{"utf-16", std::string("\xff\xfe#\0#\0", 6), "line 1: not valid UTF-8"},
        bad_document{"surrogate", with_code("\xed\xa0\x80\n" + python), "line 2: not valid UTF-8"},
        bad_document{"nul", with_code(std::string("a\0b\n", 4) + python), "line 2: a NUL byte"},
        bad_document{"old Macintosh", "## Code Implementation\r" + python,
                     "line 1: a carriage return without a line feed"},
        bad_document{"too long", with_code(python) + std::string(max_document_bytes, 'x'),
                     "at most 262144 are allowed"}));

TEST(VariantIdentity, DependsOnTheCodeAndNotOnTheProse) {
  const task_id t{1, 2};
  variant_document a = parsed(sample);
  variant_document b = a;
  b.analysis = "Something else.";
  EXPECT_EQ(identify_variant(t, a), identify_variant(t, b));
  b.options.fast_math = false;
  EXPECT_NE(identify_variant(t, a), identify_variant(t, b));
  EXPECT_NE(identify_variant(t, a), identify_variant(task_id{1, 3}, a));
}

TEST(MakeVariant, KeepsTheProblemOfATextThatDoesNotParse) {
  const auto bad = make_variant(task_id{1, 2}, "nothing");
  EXPECT_THAT(std::string(view(bad->getProblem())), HasSubstr("no '## Code Implementation'"));
  EXPECT_EQ(variant_id(bad->getId()), identify_unparsable("nothing"));
  const auto good = make_variant(task_id{1, 2}, sample);
  EXPECT_EQ(view(good->getProblem()), "");
  EXPECT_EQ(view(good->getSettings()), "fast_math = true\n");
}

TEST(VariantDocument, MegabytesOfFencesAreRefusedQuickly) {
  std::string text = "## Code Implementation\n";
  while (text.size() < max_document_bytes - 8) text += "> ```\n";
  EXPECT_NE(problem_of(text), "no problem");
}

}  // namespace
}  // namespace hone
