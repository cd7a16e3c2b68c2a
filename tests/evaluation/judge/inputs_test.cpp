#include "evaluation/judge/inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/support/fake_session.hpp"

namespace hone {
namespace {

using testing_support::fake_session;

// A task with one input as `input` describes it, of 10,000 elements in rows of 100, and its recipe.
// The oracle evaluates every `expr` as x * 2.
class drawing {
 public:
  explicit drawing(const std::string& input)
      : task_(parse_task(
            "name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n   "
            " return x\n'''\n[[input]]\nname = \"x\"\nshape = [\"N\", \"M\"]\n" +
                input + "\n[[case]]\nsizes = { N = 100, M = 100 }\ntimed = true\n",
            "t.toml")),
        oracle_(task_, std::make_unique<fake_session>(programs())),
        recipe_(oracle_, task_.cases[0]) {}

  std::vector<double> draw(distribution how) {
    return to_doubles(recipe_.draw_inputs(how, random_.bits())[0]);
  }
  input_recipe& recipe() { return recipe_; }
  random_stream& random() { return random_; }

 private:
  static fake_session::behavior programs() {
    fake_session::behavior b;
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

double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}
double deviation(const std::vector<double>& x) {
  const double middle = mean(x);
  double sum = 0;
  for (const double number : x) sum += (number - middle) * (number - middle);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(Inputs, HaveTheDistributionsOfTheProtocol) {
  drawing normal("init = \"normal\"");
  // Ten thousand draws: five standard errors of the mean are 0.05.
  EXPECT_NEAR(mean(normal.draw(distribution::declared)), 0, 0.05);
  EXPECT_NEAR(mean(normal.draw(distribution::shifted)), 25, 0.5);
  EXPECT_NEAR(deviation(normal.draw(distribution::shifted)), 10, 0.4);
  EXPECT_NEAR(deviation(normal.draw(distribution::small)), 1e-3, 4e-5);
  EXPECT_NEAR(deviation(normal.draw(distribution::large)), 1e5, 4e3);
  const std::vector<double> outliers = normal.draw(distribution::outliers);
  const auto large =
      std::count_if(outliers.begin(), outliers.end(), [](double x) { return std::abs(x) > 400; });
  EXPECT_GE(large, 4);  // about sixteen, or one in five thousand where these are more
  EXPECT_LE(large, 36);
}

TEST(Inputs, HideASingleOutlierOfEitherSign) {
  const auto large = [](drawing& from) {
    const std::uint64_t seed = from.random().bits();
    const auto drawn = [&](distribution how) {
      return to_doubles(from.recipe().draw_inputs(how, seed)[0]);
    };
    const std::vector<double> x = drawn(distribution::one_high);
    const std::vector<double> other = drawn(distribution::one_low);
    const auto is_large = [](double v) { return std::abs(v) > 400; };
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(is_large(x[i]), is_large(other[i]));
      EXPECT_EQ(is_large(x[i]), x[i] != other[i]) << "all other elements are equal";
      EXPECT_EQ(is_large(x[i]), x[i] * other[i] < -400.0 * 400) << "the signs differ";
    }
    return std::count_if(x.begin(), x.end(), is_large);
  };
  drawing normal("init = \"normal\"");
  drawing half("dtype = \"float16\"\ninit = \"uniform\"");
  drawing whole("dtype = \"int64\"\ninit = \"permutation\"");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(large(normal), 1);
    EXPECT_EQ(large(half), 1);
    EXPECT_EQ(large(whole), 0);
  }
}

TEST(Inputs, ApplyDistributionsOnTopOfInitializerArguments) {
  drawing normal("init = \"normal(3,0.5)\"");
  EXPECT_NEAR(mean(normal.draw(distribution::declared)), 3, 0.03);
  EXPECT_NEAR(mean(normal.draw(distribution::shifted)), 55, 0.3);
  drawing uniform("init = \"uniform(-2,4)\"");
  const std::vector<double> x = uniform.draw(distribution::declared);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -2);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 4);
  EXPECT_NEAR(mean(x), 1, 0.1);
}

TEST(Inputs, KeepIntegersWithinTheirBounds) {
  drawing integers("dtype = \"int64\"\ninit = \"integers(3,M)\"");
  for (const distribution how : listed_distributions) {
    const std::vector<double> indices = integers.draw(how);
    EXPECT_GE(*std::min_element(indices.begin(), indices.end()), 3) << name_of(how);
    EXPECT_LE(*std::max_element(indices.begin(), indices.end()), 99) << name_of(how);
  }
}

TEST(Inputs, VaryWhatExpressionsTake) {
  drawing expression("init = { of = \"normal\", expr = \"x * 2\" }");
  EXPECT_NEAR(deviation(expression.draw(distribution::declared)), 2, 0.1);
  EXPECT_NEAR(mean(expression.draw(distribution::shifted)), 2, 0.2) << "2 (2 x + 1)";
  EXPECT_NEAR(deviation(expression.draw(distribution::shifted)), 4, 0.2);
}

TEST(Inputs, PermuteEveryRow) {
  drawing permutation("dtype = \"int64\"\ninit = \"permutation\"");
  const std::vector<double> x = permutation.draw(distribution::declared);
  for (std::size_t row = 0; row < 100; ++row) {
    std::vector<double> sorted(x.begin() + static_cast<std::ptrdiff_t>(row * 100),
                               x.begin() + static_cast<std::ptrdiff_t>(row * 100 + 100));
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(sorted[i], static_cast<double>(i));
  }
}

TEST(Inputs, DrawBoolsWithEqualProbability) {
  drawing coin("dtype = \"bool\"");
  EXPECT_NEAR(mean(coin.draw(distribution::declared)), 0.5, 0.025);
}

TEST(Inputs, AreDrawnInFloatAndCastLast) {
  drawing half("dtype = \"float16\"\ninit = \"uniform(1,2)\"");
  for (const double x : half.draw(distribution::declared))
    ASSERT_EQ(x, static_cast<double>(half_to_float(float_to_half(static_cast<float>(x)))));
}

class Reservoir : public testing::TestWithParam<const char*> {};

TEST_P(Reservoir, GivesEqualContentsForEqualSeedsAlone) {
  drawing d(GetParam());
  const reservoir r(d.recipe(), reservoir::of::inputs, d.random());
  value_set first;
  value_set again;
  value_set other;
  r.fill(first, {1});
  r.fill(other, {2});
  r.fill(again, {1});
  EXPECT_EQ(first[0].bytes, again[0].bytes);
  EXPECT_NE(first[0].bytes, other[0].bytes);
  EXPECT_EQ(first[0].layout, d.recipe().input_layouts()[0]);
}

TEST_P(Reservoir, HasTheMeanAndDeviationOfItsInitializer) {
  drawing d(GetParam());
  const reservoir r(d.recipe(), reservoir::of::inputs, d.random());
  value_set values;
  r.fill(values, {1});
  const std::vector<double> drawn = d.draw(distribution::declared);
  const std::vector<double> filled = to_doubles(values[0]);
  // Two samples of ten thousand: their means differ by five standard errors at most.
  EXPECT_NEAR(mean(filled), mean(drawn), 5 * deviation(drawn) * std::sqrt(2.0 / 10000));
  EXPECT_NEAR(deviation(filled), deviation(drawn), 0.1 * deviation(drawn));
}

INSTANTIATE_TEST_SUITE_P(EveryInitializer, Reservoir,
                         testing::Values("init = \"normal\"", "init = \"uniform(0,1)\"",
                                         "dtype = \"bfloat16\"",
                                         "dtype = \"int32\"\ninit = \"integers(0,50)\"",
                                         "dtype = \"int64\"\ninit = \"permutation\"",
                                         "dtype = \"bool\"",
                                         "init = { of = \"normal\", expr = \"x * 2\" }"));

TEST_P(Reservoir, PerturbsAFewElements) {
  drawing d(GetParam());
  const reservoir r(d.recipe(), reservoir::of::inputs, d.random());
  value_set plain;
  value_set perturbed;
  int changed = 0;
  for (std::uint64_t perturbation = 1; perturbation <= 20; ++perturbation) {
    r.fill(plain, {1});
    r.fill(perturbed, {1, perturbation});
    const std::vector<double> before = to_doubles(plain[0]);
    const std::vector<double> after = to_doubles(perturbed[0]);
    const auto differing = std::inner_product(before.begin(), before.end(), after.begin(), 0,
                                              std::plus<>(), std::not_equal_to<>());
    EXPECT_LE(differing, 3);
    changed += differing > 0 ? 1 : 0;
    r.fill(perturbed, {1, perturbation});
    EXPECT_EQ(to_doubles(perturbed[0]), after);
    EXPECT_EQ(to_doubles(d.recipe().draw_inputs(distribution::shifted, 5, perturbation)[0]).size(),
              after.size());
  }
  // A bool is redrawn to its old value with probability 1/2, three bools are with probability 1/8.
  EXPECT_GE(changed, 12);
}

// A program that has learnt all numbers of a reservoir must not meet a piece of them again.
TEST(Reservoir, GivesSumsOfPiecesOfEveryKindOfNumber) {
  for (const char* init : {"init = \"normal\"", "init = \"uniform(0,1)\"", "dtype = \"bool\"",
                           "dtype = \"int64\"\ninit = \"integers(-7,1000000)\""}) {
    drawing d(init);
    const reservoir r(d.recipe(), reservoir::of::inputs, d.random());
    constexpr std::size_t piece = 32;
    std::set<std::vector<double>> seen;
    std::size_t pieces = 0;
    value_set values;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      r.fill(values, {seed});
      const std::vector<double> numbers = to_doubles(values[0]);
      for (std::size_t at = 0; at + piece <= numbers.size(); at += piece, ++pieces)
        seen.insert({numbers.begin() + static_cast<std::ptrdiff_t>(at),
                     numbers.begin() + static_cast<std::ptrdiff_t>(at + piece)});
    }
    // There are 131,041 pieces, of which more than a third would recur.
    EXPECT_GT(static_cast<double>(seen.size()), 0.99 * static_cast<double>(pieces)) << init;
  }
}

TEST(Reservoir, KeepsDeclaredConstants) {
  drawing d("init = \"constant(7)\"");
  const reservoir r(d.recipe(), reservoir::of::inputs, d.random());
  value_set values;
  r.fill(values, {1});
  EXPECT_EQ(to_doubles(values[0]), std::vector<double>(10000, 7.0));
  r.fill(values, {1, 0, distribution::mixed});
  EXPECT_NE(to_doubles(values[0]), std::vector<double>(10000, 7.0));
}

TEST_P(Reservoir, DrawsOtherDistributionsFromTheSameNumbers) {
  drawing d(GetParam());
  const reservoir r(d.recipe(), reservoir::of::inputs, d.random());
  value_set declared;
  value_set single;
  r.fill(declared, {1});
  r.fill(single, {1, 0, distribution::one_high});
  const std::vector<double> a = to_doubles(declared[0]);
  const std::vector<double> b = to_doubles(single[0]);
  if (std::string(GetParam()).find("normal") != std::string::npos) {
    const auto differing =
        std::inner_product(a.begin(), a.end(), b.begin(), 0, std::plus<>(), std::not_equal_to<>());
    EXPECT_EQ(differing, 1);
  }
  r.fill(single, {1, 0, distribution::declared});
  EXPECT_EQ(to_doubles(single[0]), a);
}

TEST(Reservoir, DrawsWholePermutations) {
  drawing d("dtype = \"int64\"\ninit = \"permutation\"");
  const reservoir r(d.recipe(), reservoir::of::inputs, d.random());
  value_set values;
  r.fill(values, {1});
  std::vector<double> row = to_doubles(values[0]);
  row.resize(100);
  std::sort(row.begin(), row.end());
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(row[i], static_cast<double>(i));
}

}  // namespace
}  // namespace hone
