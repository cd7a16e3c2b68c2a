#include "evaluation/judge/inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/fake_session.hpp"

namespace hone {
namespace {

using testing_support::fake_session;

// A task whose only input is as told, with 10,000 elements in rows of 100, and its recipe over an oracle that doubles in `expr`.
class drawing {
 public:
  explicit drawing(const std::string& input) : task_(parse_task("name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n    return x\n'''\n[[input]]\nname = \"x\"\nshape = [\"N\", \"M\"]\n" + input +
                                                                    "\n[[case]]\nsizes = { N = 100, M = 100 }\ntimed = true\n",
                                                                "t.toml")),
                                               oracle_(task_, std::make_unique<fake_session>(programs())), recipe_(oracle_, task_.cases[0]) {}

  std::vector<double> draw(distribution how) { return to_doubles(recipe_.draw_inputs(how, random_).values[0]); }
  input_recipe& recipe() { return recipe_; }
  random_stream& random() { return random_; }

 private:
  static fake_session::behaviour programs() {
    fake_session::behaviour b;
    b.programs = {[](const value_set& inputs, const value_set&) { return inputs; },
                  [](const value_set& inputs, const value_set&) {
                    std::vector<double> x = to_doubles(inputs[0]);
                    for (double& number : x) number *= 2;
                    return value_set{from_doubles(x, inputs[0].layout)};
                  }};
    return b;
  }

  task task_;
  reference_oracle oracle_;
  input_recipe recipe_;
  random_stream random_{17};
};

double mean(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }
double deviation(const std::vector<double>& x) {
  double sum = 0;
  for (const double number : x) sum += (number - mean(x)) * (number - mean(x));
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(Inputs, DistributionsAreThoseOfTheProtocol) {
  drawing normal("init = \"normal\"");
  // Ten thousand draws: five standard errors of the mean are 0.05.
  EXPECT_NEAR(mean(normal.draw(distribution::declared)), 0, 0.05);
  EXPECT_NEAR(mean(normal.draw(distribution::shifted)), 25, 0.5);
  EXPECT_NEAR(deviation(normal.draw(distribution::shifted)), 10, 0.4);
  EXPECT_NEAR(deviation(normal.draw(distribution::small)), 1e-3, 4e-5);
  const std::vector<double> outliers = normal.draw(distribution::outliers);
  const auto large = std::count_if(outliers.begin(), outliers.end(), [](double x) { return std::abs(x) > 400; });
  EXPECT_GE(large, 1);
  EXPECT_LE(large, 2);  // one in five thousand
}

TEST(Inputs, ArgumentsOfInitializersAreRespectedAndDisturbedAlike) {
  drawing normal("init = \"normal(3,0.5)\"");
  EXPECT_NEAR(mean(normal.draw(distribution::declared)), 3, 0.03);
  EXPECT_NEAR(mean(normal.draw(distribution::shifted)), 55, 0.3);
  drawing uniform("init = \"uniform(-2,4)\"");
  const std::vector<double> x = uniform.draw(distribution::declared);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -2);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 4);
  EXPECT_NEAR(mean(x), 1, 0.1);
}

TEST(Inputs, WholeNumbersConstantsAndExpressionsAreNeverDisturbed) {
  drawing integers("dtype = \"int64\"\ninit = \"integers(0,M)\"");
  const std::vector<double> indices = integers.draw(distribution::shifted);
  EXPECT_EQ(*std::min_element(indices.begin(), indices.end()), 0);
  EXPECT_EQ(*std::max_element(indices.begin(), indices.end()), 99);
  drawing constant("init = \"constant(7)\"");
  EXPECT_EQ(constant.draw(distribution::outliers), std::vector<double>(10000, 7.0));
  drawing expression("init = { of = \"normal\", expr = \"x * 2\" }");
  EXPECT_NEAR(deviation(expression.draw(distribution::shifted)), 2, 0.1);
}

TEST(Inputs, PermutationsArePermutationsOfEveryRow) {
  drawing permutation("dtype = \"int64\"\ninit = \"permutation\"");
  const std::vector<double> x = permutation.draw(distribution::declared);
  for (std::size_t row = 0; row < 100; ++row) {
    std::vector<double> sorted(x.begin() + static_cast<std::ptrdiff_t>(row * 100), x.begin() + static_cast<std::ptrdiff_t>(row * 100 + 100));
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(sorted[i], static_cast<double>(i));
  }
}

TEST(Inputs, BoolsAreAFairCoin) {
  drawing coin("dtype = \"bool\"");
  EXPECT_NEAR(mean(coin.draw(distribution::declared)), 0.5, 0.025);
}

TEST(Inputs, EveryTypeIsDrawnInFloatAndCastLast) {
  drawing half("dtype = \"float16\"\ninit = \"uniform(1,2)\"");
  for (const double x : half.draw(distribution::declared)) ASSERT_EQ(x, static_cast<double>(half_to_float(float_to_half(static_cast<float>(x)))));
}

class Refreshing : public testing::TestWithParam<const char*> {};

TEST_P(Refreshing, ChangesContentsAndTheSessionsCopyAlike) {
  drawing d(GetParam());
  drawn_values drawn = d.recipe().draw_inputs(distribution::declared, d.random());
  fake_session session(testing_support::right_program());
  session.arrange(0, d.recipe().input_layouts(), {}, 1);
  session.write_inputs(0, drawn.values);
  int changed = 0;
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::byte> before = drawn.values[0].bytes;
    d.recipe().refresh_inputs(drawn, d.random(), session, 0);
    changed += drawn.values[0].bytes != before ? 1 : 0;
    ASSERT_TRUE(session.inputs_hold(0, drawn.values));
  }
  EXPECT_GE(changed, 15);  // a coin comes up the same way as often as not: three elements do with probability 1/8
}

INSTANTIATE_TEST_SUITE_P(EveryInitializer, Refreshing,
                         testing::Values("init = \"normal\"", "init = \"uniform(0,1)\"", "dtype = \"bfloat16\"", "dtype = \"int32\"\ninit = \"integers(0,50)\"", "dtype = \"int64\"\ninit = \"permutation\"",
                                         "dtype = \"bool\"", "init = { of = \"normal\", expr = \"x * 2\" }"));

TEST(Refreshing, LeavesConstantsAndNothingElseAlone) {
  drawing d("init = \"constant(7)\"");
  drawn_values drawn = d.recipe().draw_inputs(distribution::declared, d.random());
  fake_session session(testing_support::right_program());
  session.arrange(0, d.recipe().input_layouts(), {}, 1);
  session.write_inputs(0, drawn.values);
  d.recipe().refresh_inputs(drawn, d.random(), session, 0);
  EXPECT_EQ(to_doubles(drawn.values[0]), std::vector<double>(10000, 7.0));
}

}  // namespace
}  // namespace hone
