#include <gtest/gtest.h>

#include "tasks/task_file.hpp"

namespace hone {
namespace {

TEST(TaskText, PrintedTextParsesBackToTheSameTask) {
  task t;
  t.name = "odd_one";
  t.summary = "quotes \" and \\ and\ttabs";
  t.relaxed = true;
  t.distributions = {distribution::declared, distribution::outliers};
  t.reference = "def forward(a: Tensor, w: Tensor) -> Tensor:\n    return a * w\n";
  t.tolerances[dtype::float32] = {1e-3, 2.5e-7};
  initializer of_size;
  of_size.of = initializer::kind::integers;
  of_size.a = 0.0;
  of_size.b = std::string("V");
  initializer shaped;
  shaped.of = initializer::kind::uniform;
  shaped.a = -0.5;
  shaped.b = 0.5;
  shaped.expr = "torch.triu(x)";
  initializer coin;
  coin.of = initializer::kind::coin;
  t.inputs = {{"a", {std::string("N"), std::int64_t{3}}, dtype::int64, of_size, ""},
              {"b", {}, dtype::boolean, coin, ""},
              {"c", {std::string("V")}, dtype::bfloat16, shaped, ""}};
  t.parameters = {{"w", {std::string("N")}, dtype::float32, {}, ""}};
  t.cases = {{{{"N", 4}, {"V", 9}}, true, {"cpu", "cuda"}}, {{{"N", 5}, {"V", 7}}, false, {}}};
  t.tier = 2;
  t.source_language = "python";
  t.source_text = "class Model:\n    '''documented'''\n";

  const std::string text = print_task(t);
  const task back = parse_task(text, "printed.toml");
  EXPECT_EQ(back.name, t.name);
  EXPECT_EQ(back.summary, t.summary);
  EXPECT_EQ(back.relaxed, t.relaxed);
  EXPECT_EQ(back.tier, t.tier);
  EXPECT_EQ(back.distributions, t.distributions);
  EXPECT_EQ(back.reference, t.reference);
  EXPECT_EQ(back.tolerances, t.tolerances);
  EXPECT_EQ(back.inputs, t.inputs);
  EXPECT_EQ(back.parameters, t.parameters);
  EXPECT_EQ(back.cases, t.cases);
  EXPECT_EQ(back.source_text, t.source_text);
  EXPECT_EQ(print_task(back), text);
}

}  // namespace
}  // namespace hone
