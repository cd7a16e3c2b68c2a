#include "evaluation/judge/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "evaluation/judge/random_values.hpp"

namespace hone {
namespace {

using testing::HasSubstr;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr tolerance default_tolerance{1e-4, 1e-4};

tensor_value f32(const std::vector<double>& x) {
  return from_doubles(x, {dtype::float32, {static_cast<std::int64_t>(x.size())}});
}
tensor_value f64(const std::vector<double>& x) {
  return from_doubles(x, {dtype::float64, {static_cast<std::int64_t>(x.size())}});
}
tensor_value i64(const std::vector<double>& x) {
  return from_doubles(x, {dtype::int64, {static_cast<std::int64_t>(x.size())}});
}

std::string problem(const tensor_value& actual, const tensor_value& own,
                    const std::optional<tensor_value>& wide = {}) {
  return compare_output(actual, own, wide ? &*wide : nullptr, default_tolerance)
      .problem.value_or("agrees");
}

std::vector<double> normals(std::size_t n) {
  std::vector<float> x(n);
  random_stream(7).fill_normal(x);
  return {x.begin(), x.end()};
}

TEST(Comparison, AcceptsWhatLiesWithinTheTolerance) {
  EXPECT_EQ(problem(f32({1, 2, 3}), f32({1, 2.0001, 3})), "agrees");
  EXPECT_THAT(problem(f32({1, 2, 3}), f32({1, 2.01, 3})),
              HasSubstr("element [1] is 2, expected 2.01"));
}

TEST(Comparison, ScalesTheAbsoluteToleranceByTheRmsOfTheOutput) {
  // The output's root mean square is 1e-3, so an atol of 1e-4 allows 1e-7. The error of 1e-6 is ten
  // times that.
  std::vector<double> small = normals(1000);
  for (double& x : small) x *= 1e-3;
  std::vector<double> off = small;
  off[17] = 1e-6;
  small[17] = 0;
  EXPECT_THAT(problem(f32(off), f32(small)), HasSubstr("element [17]"));
}

TEST(Comparison, DetectsAnErrorOfAllElementsByTheL2Norm) {
  const std::vector<double> b = normals(10000);
  std::vector<double> a = b;
  double sign = 1;
  for (double& x : a) {
    x += sign * 1.5e-4 * std::abs(x) * 0.99;  // below the limit for a large element
    sign = -sign;
  }
  EXPECT_NE(problem(f32(a), f32(b)), "agrees");
}

TEST(Comparison, DetectsLowerPrecision) {
  const std::vector<double> b = normals(4096);
  std::vector<double> a(b.size());
  for (std::size_t i = 0; i < b.size(); ++i)
    a[i] = bfloat16_to_float(float_to_bfloat16(static_cast<float>(b[i])));
  EXPECT_NE(problem(f32(a), f32(b)), "agrees");
  for (std::size_t i = 0; i < b.size(); ++i)
    a[i] = half_to_float(float_to_half(static_cast<float>(b[i])));
  EXPECT_NE(problem(f32(a), f32(b)), "agrees") << "half precision keeps as many bits as TF32";
}

TEST(Comparison, RequiresSpecialValuesWhereTheyAreExpected) {
  EXPECT_EQ(problem(f32({nan, infinity, -infinity, 1}), f32({nan, infinity, -infinity, 1})),
            "agrees");
  EXPECT_THAT(problem(f32({1, 1}), f32({nan, 1})), HasSubstr("element [0]"));
  EXPECT_THAT(problem(f32({infinity, 1}), f32({-infinity, 1})), HasSubstr("element [0]"));
  EXPECT_THAT(problem(f32({infinity, 1}), f32({3e38, 1})), HasSubstr("element [0]"));
}

TEST(Comparison, AcceptsEitherValueIfTheReferencesRunsDisagreeOnASpecialOne) {
  // If the reference overflows in float32 but not in float64, both runs give infinity, because the
  // wide value overflows when it is cast back. If only the narrow run is NaN, both NaN and the wide
  // run's number are right.
  EXPECT_EQ(problem(f32({nan, 1}), f32({nan, 1}), f64({2, 1})), "agrees");
  EXPECT_EQ(problem(f32({2, 1}), f32({nan, 1}), f64({2, 1})), "agrees");
  EXPECT_NE(problem(f32({3, 1}), f32({nan, 1}), f64({2, 1})), "agrees");
}

TEST(Comparison, AllowsTwiceTheReferencesOwnErrorIfThatIsLarger) {
  // The reference itself is off by 1e-3 from float64: ten times the tolerance.
  EXPECT_EQ(problem(f32({1.0018, 1}), f32({1.001, 1}), f64({1, 1})), "agrees");
  EXPECT_NE(problem(f32({1.0028, 1}), f32({1.001, 1}), f64({1, 1})), "agrees");
  EXPECT_NE(problem(f32({1.0018, 1}), f32({1, 1}), f64({1, 1})), "agrees");
}

TEST(Comparison, AllowsOneRoundingWhereTheReferenceIsOffByHalfOfOne) {
  const double rounding = 0x1p-13;  // of a number between 1,024 and 2,048, in between
  const std::vector<double> exact = {0.3, rounding / 2, 0};
  EXPECT_EQ(problem(f32({0.3, rounding / 2, rounding}), f32({0.3, 0, 0}), f64(exact)), "agrees");
}

TEST(Comparison, ReportsHowInexactTheReferenceIs) {
  // An atol and an rtol of 1e-3 allow 2e-3 if all elements are 1.
  const tolerance allowed{1e-3, 1e-3};
  const tensor_value exact = f64({1, 1});
  const auto inexactness = [&](double own) {
    return compare_output(f32({1, 1}), f32({own, 1}), &exact, allowed).reference_inexactness;
  };
  EXPECT_NEAR(inexactness(1.001), 0.7, 0.01) << "the relative L2 error is 0.7e-3";
  EXPECT_NEAR(inexactness(1.01), 7.1, 0.1);
  EXPECT_EQ(compare_output(f32({1}), f32({2}), nullptr, allowed).reference_inexactness, 0)
      << "unknown without a wide run";
}

TEST(Comparison, RequiresIntegersOfOneOfTheReferencesRuns) {
  EXPECT_EQ(problem(i64({1, 2}), i64({1, 2})), "agrees");
  EXPECT_THAT(problem(i64({1, 3}), i64({1, 2})), HasSubstr("element [1] is 3, expected 2"));
  EXPECT_EQ(problem(i64({1, 3}), i64({1, 2}), i64({1, 3})), "agrees")
      << "an argmax that differs between the two precisions";
}

TEST(Comparison, NamesUnwrittenMemory) {
  tensor_value actual = f32({1, 2});
  std::fill(actual.bytes.begin() + 4, actual.bytes.end(), std::byte{0xff});
  EXPECT_THAT(problem(actual, f32({1, 2})), HasSubstr("element [1] was never written"));
}

TEST(Comparison, RefusesAConstantUnderAnyTolerance) {
  const tolerance loose{10, 10};
  const agreement zeros = compare_output(f32({0, 0, 0}), f32({1e-9, -1e-9, 2e-9}), nullptr, loose);
  EXPECT_THAT(zeros.problem.value_or(""), HasSubstr("constant"));
  EXPECT_TRUE(zeros.only_by_tolerance);
  EXPECT_FALSE(compare_output(f32({0, 0}), f32({0, 0}), nullptr, default_tolerance).problem)
      << "zeros are expected";
  EXPECT_FALSE(compare_output(f32({5}), f32({5}), nullptr, default_tolerance).problem);
}

TEST(Comparison, AllowsAConstantThatMayBeChanceAmongRoundingErrors) {
  // The reference's own result is as far from its float64 run as zeros are.
  const auto rounding = [](std::size_t n) {
    std::vector<double> values(n, 0.0);
    values.front() = 1e-9;
    return values;
  };
  const auto is_refused = [&](std::size_t n) {
    const std::vector<double> zeros(n, 0.0);
    std::vector<double> exact(n, 0.0);
    exact.back() = 1e-17;
    const tensor_value wide = f64(exact);
    return compare_output(f32(zeros), f32(rounding(n)), &wide, {10, 10}).problem.has_value();
  };
  EXPECT_FALSE(is_refused(5));
  EXPECT_TRUE(is_refused(128)) << "that many zeros are no chance";
}

TEST(Comparison, AllowsZerosWhereNextToNothingIsExpected) {
  // As of products of many small numbers, most of which round to zero.
  std::vector<double> products(128, 0.0);
  products.front() = 1e-44;
  const tensor_value own = f32(products);
  const std::vector<double> zeros(128, 0.0);
  EXPECT_EQ(problem(f32(zeros), own), "agrees");
  products.front() = 1e-24;
  EXPECT_NE(problem(f32(zeros), f32(products)), "agrees");
}

TEST(Comparison, AllowsAConstantWhereOnlyRoundingVaries) {
  std::vector<double> saturated(128, 1.0);
  saturated[5] = 1.0 - 1.0 / (1 << 22);
  const std::vector<double> ones(128, 1.0);
  EXPECT_EQ(problem(f32(ones), f32(saturated)), "agrees");
  saturated[5] = 0.9;
  EXPECT_TRUE(compare_output(f32(ones), f32(saturated), nullptr, {10, 10}).problem.has_value());
}

TEST(Comparison, AllowsOnlyZerosIfOnlyZerosAreExpected) {
  EXPECT_NE(problem(f32({0, 1e-12}), f32({0, 0})), "agrees");
}

// The numbers of a distribution with a heavy tail: few elements decide the output's size.
std::vector<double> heavy_tailed(std::size_t n) {
  std::vector<double> x = normals(n);
  for (double& v : x) v = std::exp(3 * v);
  return x;
}

TEST(Comparison, RefusesZerosForTheSmallElementsOfAHeavyTail) {
  const std::vector<double> b = heavy_tailed(10000);
  std::vector<double> a = b;
  for (double& v : a) v = v < 0.1 ? 0 : v;
  EXPECT_THAT(problem(f32(a), f32(b)),
              HasSubstr("elements are off by more than 10 % of themselves"));
  a = b;
  for (double& v : a) v = v < 0.1 ? v * 1.2 : v;
  EXPECT_THAT(problem(f32(a), f32(b)),
              HasSubstr("elements are off by more than 10 % of themselves"));
  a = b;
  for (double& v : a) v *= 1 + 1e-5;
  EXPECT_EQ(problem(f32(a), f32(b)), "agrees");
}

TEST(Comparison, AllowsToMissFewElementsAndTwiceAsManyAsTheReference) {
  std::vector<double> b = heavy_tailed(10000);
  std::vector<double> a = b;
  for (double& v : a) v = v < 0.01 ? 0 : v;  // 6 % of the elements
  EXPECT_EQ(problem(f32(a), f32(b)), "agrees");
  std::vector<double> own = b;
  for (double& v : own) v = v < 0.2 ? 0 : v;
  for (double& v : a) v = v < 0.3 ? 0 : v;
  EXPECT_EQ(problem(f32(a), f32(own), f64(b)), "agrees");
  EXPECT_EQ(problem(f32({0, 1, 1e4}), f32({0.5, 1, 1e4})), "agrees");
  EXPECT_THAT(problem(f32({0, 0, 1e4}), f32({0.5, 0.5, 1e4})), HasSubstr("2 of 3 elements"));
}

TEST(Comparison, DoesNotCountElementsNextToRounding) {
  std::vector<double> exact = normals(10000);
  std::vector<double> by_tanh = exact;
  for (double& v : exact) v = 1 / (1 + std::exp(-30 * v));
  for (double& v : by_tanh) v = 0.5F + 0.5F * std::tanh(0.5F * static_cast<float>(30 * v));
  EXPECT_EQ(problem(f32(by_tanh), f32(exact)), "agrees");
  std::vector<double> positive = normals(10000);
  for (double& v : positive) v = std::max(v, 0.0);
  std::vector<double> moved = positive;
  for (double& v : moved) v += 2e-7;
  EXPECT_EQ(problem(f32(moved), f32(positive)), "agrees");
}

TEST(Comparison, AMissedOutputDoesNotHideAWrongOne) {
  const std::vector<tensor_layout> two(2, tensor_layout{dtype::float32, {3}});
  agreement missed;
  missed.problem = "missed";
  missed.only_by_misses = true;
  agreement wrong;
  wrong.problem = "wrong";
  const auto compare = [&](std::size_t wrong_one) {
    return compare_all(two, two, [&](std::size_t i) { return i == wrong_one ? wrong : missed; });
  };
  for (const std::size_t wrong_one : {0U, 1U}) {
    EXPECT_FALSE(compare(wrong_one).only_by_misses);
    EXPECT_EQ(compare(wrong_one).problem, "output " + std::to_string(wrong_one) + ": wrong");
  }
  EXPECT_TRUE(compare(2).only_by_misses);
  EXPECT_EQ(compare(2).problem, "output 0: missed");
}

TEST(Comparison, NamesWrongCountsShapesAndTypes) {
  task t;
  expected_outputs expected{{f32({1, 2})}, std::nullopt};
  EXPECT_THAT(compare_outputs({}, expected, t).problem.value_or(""),
              HasSubstr("0 outputs, expected 1"));
  EXPECT_THAT(compare_outputs({f32({1, 2, 3})}, expected, t).problem.value_or(""),
              HasSubstr("is float32[3], expected float32[2]"));
  EXPECT_THAT(compare_outputs({f64({1, 2})}, expected, t).problem.value_or(""),
              HasSubstr("is float64[2], expected float32[2]"));
  EXPECT_FALSE(compare_outputs({f32({1, 2})}, expected, t).problem);
}

TEST(Comparison, EmptyOutputsAgree) {
  EXPECT_FALSE(compare_output(f32({}), f32({}), nullptr, default_tolerance).problem);
}

}  // namespace
}  // namespace hone
