#include "policy/text/prompt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/text/tokenizer.hpp"
#include "tests/support/refusal.hpp"

namespace hone {
namespace {

using testing::HasSubstr;

prompt_facts two_exemplars() {
  prompt_facts facts;
  facts.task_name = "diag";
  facts.summary = "C = diag(A) B";
  facts.source = "def forward(A): ...";
  facts.device_type = "cpu-x";
  facts.exemplars = {{1.0, "slow code"}, {12.5, "fast code"}};
  return facts;
}

TEST(PromptTemplate, ReplacesPlaceholdersByFacts) {
  EXPECT_EQ(
      prompt_template::parse("{{task}} on {{device}}: {{summary}}\n", "t").render(two_exemplars()),
      "diag on cpu-x: C = diag(A) B\n");
}

TEST(PromptTemplate, RepeatsASectionForEachExemplar) {
  const auto t = prompt_template::parse(
      "start\n{{#exemplars}}\n#{{number}} {{score}}\n{{code}}\n{{/exemplars}}\nend\n", "t");
  EXPECT_EQ(t.render(two_exemplars()), "start\n#1 1.00\nslow code\n#2 12.50\nfast code\nend\n");
}

TEST(PromptTemplate, RendersTheInvertedSectionOnlyWithoutExemplars) {
  const auto t = prompt_template::parse(
      "{{#exemplars}}{{code}};{{/exemplars}}{{^exemplars}}nothing yet{{/exemplars}}.", "t");
  EXPECT_EQ(t.render(two_exemplars()), "slow code;fast code;.");
  auto facts = two_exemplars();
  facts.exemplars.clear();
  EXPECT_EQ(t.render(facts), "nothing yet.");
}

TEST(PromptTemplate, ShowsAnAttemptIfThereIsOne) {
  const auto t = prompt_template::parse(
      "{{#attempt}}\n{{outcome}} {{score}}: "
      "{{message}}\n{{profile}}\n{{code}}\n{{/attempt}}\nend\n",
      "t");
  auto facts = two_exemplars();
  EXPECT_EQ(t.render(facts), "end\n");
  facts.attempt = {"ok", "no message", "40 registers", {0.5, "slow code"}};
  EXPECT_EQ(t.render(facts), "ok 0.50: no message\n40 registers\nslow code\nend\n");
}

TEST(PromptFacts, TellWhatArgumentsAVariantTakesAndOfWhichSizes) {
  const task t = parse_task(R"(
name = "scaled"
summary = "a product"
reference = """
def forward(x: Tensor, w: Tensor) -> Tensor:
    return torch.matmul(x, w)
"""
[source]
language = "python"
text = "class Model: ..."
[[input]]
name = "x"
shape = ["N", 256]
[[parameter]]
name = "w"
shape = [256, "M"]
dtype = "bfloat16"
[[parameter]]
name = "scale"
shape = []
init = 'constant(2)'
fixed = true
[[case]]
sizes = { N = 7, M = 5 }
[[case]]
sizes = { N = 4096, M = 512 }
timed = true
on = ["cuda"]
[[case]]
sizes = { N = 64, M = 32 }
timed = true
on = ["cpu"]
)",
                            "scaled.toml");
  record_builder<schema::Draw> draw;
  draw->setDeviceType("h100-sm90");
  const auto facts = facts_for(t, *draw.finish());
  const auto render = [&](const char* text) {
    return prompt_template::parse(text, "t").render(facts);
  };
  EXPECT_EQ(render("{{source}}"), "class Model: ...");
  EXPECT_EQ(render("{{reference}}"),
            "def forward(x: Tensor, w: Tensor) -> Tensor:\n    return torch.matmul(x, w)");
  EXPECT_EQ(render("{{tensors}}"),
            "x: float32 [N, 256]\nw: bfloat16 [256, M], a parameter\n"
            "scale: float32 [], a parameter, fixed as constant(2)");
  EXPECT_EQ(render("{{sizes}}"), "timed: M=512 N=4096\nalso right for: M=5 N=7");
}

TEST(PromptFacts, HaveTheAttemptOfADraw) {
  task t;
  t.name = "softmax";
  record_builder<schema::Draw> draw;
  EXPECT_FALSE(facts_for(t, *record_builder<schema::Draw>().finish()).attempt);
  auto attempt = draw->initAttempt();
  attempt.setOutcome("wrong_result");
  attempt.setMessage("element [3] is 4, expected 5");
  attempt.setPython("def forward(x: Tensor) -> Tensor:\n    return x\n");
  const auto facts = facts_for(t, *draw.finish());
  ASSERT_TRUE(facts.attempt);
  EXPECT_EQ(facts.attempt->outcome, "wrong_result");
  EXPECT_EQ(facts.attempt->message, "element [3] is 4, expected 5");
  EXPECT_THAT(facts.attempt->variant.code, HasSubstr("return x"));
}

TEST(PromptTemplate, RefusesUnknownMarksAndNamesFileAndLine) {
  const auto error_of = [](const std::string& text) {
    return testing_support::refusal_of<policy_error>(
        [&] { prompt_template::parse(text, "p.txt"); });
  };
  EXPECT_THAT(error_of("a\n{{taks}}"), HasSubstr("p.txt:2: {{taks}} is unknown"));
  EXPECT_THAT(error_of("{{task"), HasSubstr("'{{' without '}}'"));
  EXPECT_THAT(error_of("{{#exemplars}}x"), HasSubstr("never closed"));
  EXPECT_THAT(error_of("x{{/exemplars}}"), HasSubstr("without its beginning"));
  EXPECT_THAT(error_of("{{#exemplars}}x{{/attempt}}"), HasSubstr("without its beginning"));
  EXPECT_THAT(error_of("{{#attempt}}{{#exemplars}}{{/exemplars}}{{/attempt}}"),
              HasSubstr("cannot be nested"));
}

TEST(PromptFacts, ShowTheSourceTextInsteadOfTheReferenceIfTheTaskHasOne) {
  task t;
  t.name = "x";
  t.reference = "def forward(a): return a\n";
  record_builder<schema::Draw> draw;
  draw->setDeviceType("cpu-x");
  auto exemplar = draw->initExemplars(1)[0];
  exemplar.setScore(2.5);
  exemplar.setPython("def forward(a: Tensor) -> Tensor:\n    return a\n");
  prompt_facts facts = facts_for(t, *draw.finish());
  EXPECT_EQ(facts.source, "def forward(a): return a");
  EXPECT_EQ(facts.exemplars[0].code,
            "```python\ndef forward(a: Tensor) -> Tensor:\n    return a\n```");
  t.source_text = "class Model: ...";
  t.source_language = "python";
  record_builder<schema::Draw> bare;
  EXPECT_EQ(facts_for(t, *bare.finish()).source, "class Model: ...");
}

}  // namespace
}  // namespace hone
