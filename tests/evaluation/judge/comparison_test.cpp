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
constexpr double rounding = 0x1p-24;  // the unit roundoff of float32
// Errors that element_rule.cuh allows, in what rounding explains.
constexpr double of_an_element = 16;
constexpr double rms_of_many = 3;

tensor_value f32(const std::vector<double>& x) {
  return from_doubles(x, {dtype::float32, {static_cast<std::int64_t>(x.size())}});
}
tensor_value f64(const std::vector<double>& x) {
  return from_doubles(x, {dtype::float64, {static_cast<std::int64_t>(x.size())}});
}
tensor_value i64(const std::vector<double>& x) {
  return from_doubles(x, {dtype::int64, {static_cast<std::int64_t>(x.size())}});
}

expected_outputs only(const tensor_value& own) {
  expected_outputs expected;
  expected.own = {own};
  return expected;
}
expected_outputs with_wide(const tensor_value& own, const tensor_value& wide) {
  expected_outputs expected = only(own);
  expected.wide = value_set{wide};
  return expected;
}
expected_outputs with_noise(const tensor_value& own, const std::vector<tensor_value>& noisy) {
  expected_outputs expected = only(own);
  for (const tensor_value& run : noisy) expected.noisy.push_back({run});
  return expected;
}

std::string problem(const tensor_value& actual, const expected_outputs& expected,
                    tolerance allowed = {}) {
  return compare_output(actual, expected, 0, allowed).problem.value_or("agrees");
}

std::vector<double> normals(std::size_t n) {
  std::vector<float> x(n);
  random_stream(7).fill_normal(x);
  return {x.begin(), x.end()};
}

std::vector<double> times(std::vector<double> x, double factor) {
  for (double& v : x) v *= factor;
  return x;
}

std::vector<double> ones() { return std::vector<double>(1000, 1.0); }
std::vector<double> ones_but(std::size_t i, double x) {
  std::vector<double> all = ones();
  all[i] = x;
  return all;
}

TEST(Comparison, AllowsRoundingsOfAnElementWithoutFurtherEvidence) {
  const expected_outputs expected = only(f32(ones()));
  EXPECT_EQ(problem(f32(ones_but(1, 1 + 0.9 * of_an_element * rounding)), expected), "agrees");
  EXPECT_THAT(problem(f32(ones_but(1, 1 + 1.25 * of_an_element * rounding)), expected),
              HasSubstr("element [1] is 1, expected 1 (1.25 times what rounding allows)"));
}

TEST(Comparison, AllowsMultiplesOfTheSpreadOfRunsWithNoise) {
  const double spread = 1e-4;
  const expected_outputs expected =
      with_noise(f32(ones()), {f32(ones_but(1, 1 + spread)), f32(ones_but(1, 1 - spread / 2))});
  EXPECT_EQ(problem(f32(ones_but(1, 1 + 0.98 * of_an_element * spread)), expected), "agrees");
  EXPECT_NE(problem(f32(ones_but(1, 1 + 1.02 * of_an_element * spread)), expected), "agrees");
  EXPECT_NE(problem(f32(ones_but(0, 1 + 0.5 * of_an_element * spread)), expected), "agrees")
      << "the spread of one element excuses no other";
}

TEST(Comparison, AllowsMultiplesOfTheReferencesOwnErrorAtThatElement) {
  const double error = 1e-3;
  const expected_outputs expected = with_wide(f32(ones_but(0, 1 + error)), f64(ones()));
  EXPECT_EQ(problem(f32(ones_but(0, 1 - 0.98 * of_an_element * error)), expected), "agrees");
  EXPECT_NE(problem(f32(ones_but(0, 1 - 1.02 * of_an_element * error)), expected), "agrees");
  EXPECT_NE(problem(f32(ones_but(1, 1 + error)), expected), "agrees")
      << "the reference's error at one element excuses no other";
}

TEST(Comparison, AllowsWhatRoundingExplainsAtATypicalElementEverywhere) {
  // Chance may make the runs with noise agree at an element.
  const std::vector<double> b(1000, 1.0);
  std::vector<double> noisy = times(b, 1 + 1e-5);
  noisy[17] = 1;
  std::vector<double> a = b;
  a[17] += 0.9 * of_an_element * 1e-5;
  EXPECT_EQ(problem(f32(a), with_noise(f32(b), {f32(noisy)})), "agrees");
  a[17] += 0.2 * of_an_element * 1e-5;
  EXPECT_NE(problem(f32(a), with_noise(f32(b), {f32(noisy)})), "agrees");
}

TEST(Comparison, FewLargeElementsDoNotExcuseTheOthers) {
  std::vector<double> b = normals(10000);
  for (double& x : b) x = std::exp(5 * x);
  std::vector<double> a = b;
  for (double& x : a) x = x < 1 ? 0 : x;
  EXPECT_NE(problem(f32(a), only(f32(b))), "agrees");
  a = b;
  a[17] = b[17] < 1e-3 ? b[17] : 0;
  EXPECT_NE(problem(f32(a), only(f32(b))), "agrees");
}

TEST(Comparison, LimitsTheRootMeanSquareOfManyElementsFurther) {
  const std::vector<double> b = times(normals(10000), 1);
  const auto off_by = [&](double roundings) {
    std::vector<double> a = b;
    double sign = 1;
    for (double& x : a) {
      x += sign * roundings * rounding * std::abs(x);
      sign = -sign;
    }
    return problem(f32(a), only(f32(b)));
  };
  // Elements below the geometric mean, 0.53, are off by less than allowed.
  EXPECT_EQ(off_by(rms_of_many * 0.8), "agrees");
  EXPECT_THAT(off_by(rms_of_many * 2), HasSubstr("as a root mean square"));
}

TEST(Comparison, DetectsLowerPrecision) {
  const std::vector<double> b = normals(4096);
  std::vector<double> a(b.size());
  for (std::size_t i = 0; i < b.size(); ++i)
    a[i] = bfloat16_to_float(float_to_bfloat16(static_cast<float>(b[i])));
  EXPECT_NE(problem(f32(a), only(f32(b))), "agrees");
  for (std::size_t i = 0; i < b.size(); ++i)
    a[i] = half_to_float(float_to_half(static_cast<float>(b[i])));
  EXPECT_NE(problem(f32(a), only(f32(b))), "agrees") << "half precision keeps as many bits as TF32";
  for (std::size_t i = 0; i < b.size(); ++i) a[i] = std::round(b[i] * (1 << 16)) / (1 << 16);
  EXPECT_NE(problem(f32(a), only(f32(b))), "agrees") << "fixed point of 16 bits";
}

TEST(Comparison, RequiresSpecialValuesWhereTheyAreExpected) {
  EXPECT_EQ(problem(f32({nan, infinity, -infinity, 1}), only(f32({nan, infinity, -infinity, 1}))),
            "agrees");
  EXPECT_THAT(problem(f32({1, 1}), only(f32({nan, 1}))), HasSubstr("element [0]"));
  EXPECT_THAT(problem(f32({infinity, 1}), only(f32({-infinity, 1}))), HasSubstr("element [0]"));
  EXPECT_THAT(problem(f32({infinity, 1}), only(f32({3e38, 1}))), HasSubstr("element [0]"));
}

TEST(Comparison, AcceptsASpecialValueOfAnyRun) {
  // If the reference overflows in float32 but not in float64, both runs give infinity, because the
  // wide value overflows when it is cast back. If only the narrow run is NaN, both NaN and the wide
  // run's number are right.
  EXPECT_EQ(problem(f32({nan, 1}), with_wide(f32({nan, 1}), f64({2, 1}))), "agrees");
  EXPECT_EQ(problem(f32({2, 1}), with_wide(f32({nan, 1}), f64({2, 1}))), "agrees");
  EXPECT_NE(problem(f32({3, 1}), with_wide(f32({nan, 1}), f64({2, 1}))), "agrees");
  EXPECT_EQ(problem(f32({infinity, 1}), with_noise(f32({3e38, 1}), {f32({infinity, 1})})),
            "agrees");
}

TEST(Comparison, AcceptsEitherResultOfADecisionAndNothingBetween) {
  expected_outputs expected = only(f32({0.1, 0.1, 0.1}));
  expected.alternatives = {{f32({0.1, 0.2, 0.1})}, {f32({0.1, 0.1, 0.1})}};
  EXPECT_EQ(problem(f32({0.1, 0.1, 0.1}), expected), "agrees");
  EXPECT_EQ(problem(f32({0.1, 0.2, 0.1}), expected), "agrees");
  EXPECT_NE(problem(f32({0.1, 0.15, 0.1}), expected), "agrees");
  EXPECT_NE(problem(f32({0.1, 0.3, 0.1}), expected), "agrees");
  EXPECT_NE(problem(f32({0.1, 0.2, 0.2}), expected), "agrees")
      << "another element's value lies far from the step";
}

TEST(Comparison, AcceptsWhatLiesBetweenTheResultsOfManyDecisions) {
  expected_outputs expected = only(f32({100}));
  expected.alternatives = {{f32({101})}, {f32({99})}, {f32({102})}};
  EXPECT_EQ(problem(f32({100.5}), expected), "agrees");
  EXPECT_EQ(problem(f32({104}), expected), "agrees") << "chance may decide all of them alike";
  EXPECT_NE(problem(f32({106}), expected), "agrees");
}

TEST(Comparison, RequiresIntegersOfOneOfTheReferencesRuns) {
  EXPECT_EQ(problem(i64({1, 2}), only(i64({1, 2}))), "agrees");
  EXPECT_THAT(problem(i64({1, 3}), only(i64({1, 2}))), HasSubstr("element [1] is 3, expected 2"));
  EXPECT_EQ(problem(i64({1, 3}), with_wide(i64({1, 2}), i64({1, 3}))), "agrees")
      << "an argmax that differs between the two precisions";
  expected_outputs expected = only(i64({1, 2}));
  expected.alternatives = {{i64({1, 3})}};
  EXPECT_EQ(problem(i64({1, 3}), expected), "agrees");
  EXPECT_NE(problem(i64({1, 4}), expected), "agrees");
}

TEST(Comparison, NamesUnwrittenMemory) {
  tensor_value actual = f32({1, 2});
  std::fill(actual.bytes.begin() + 4, actual.bytes.end(), std::byte{0xff});
  EXPECT_THAT(problem(actual, only(f32({1, 2}))), HasSubstr("element [1] was never written"));
}

TEST(Comparison, RefusesAConstantThatRoundingDoesNotExplain) {
  EXPECT_NE(problem(f32({0, 0, 0}), only(f32({1e-9, -1e-9, 2e-9}))), "agrees");
  EXPECT_EQ(problem(f32({0, 0}), only(f32({0, 0}))), "agrees");
  EXPECT_EQ(problem(f32({0, 0}), with_noise(f32({1e-9, -1e-9}), {f32({-2e-9, 3e-9})})), "agrees")
      << "outputs that are nothing but rounding errors";
}

TEST(Comparison, AllowsResultsNextToZeroToBeFlushed) {
  std::vector<double> products(128, 0.0);
  products.front() = 1e-44;
  EXPECT_EQ(problem(f32(std::vector<double>(128, 0.0)), only(f32(products))), "agrees");
  products.front() = 1e-24;
  EXPECT_NE(problem(f32(std::vector<double>(128, 0.0)), only(f32(products))), "agrees");
}

TEST(Comparison, AllowsOnlyZerosIfOnlyZerosAreExpected) {
  EXPECT_NE(problem(f32({0, 1e-12}), only(f32({0, 0}))), "agrees");
}

TEST(Comparison, AllowsNoConstantWhateverTheTasksTolerance) {
  const expected_outputs expected = only(f32({0.5001, 0.4999, 0.5002, 0.4998}));
  EXPECT_NE(problem(f32({0.5, 0.5, 0.5, 0.5}), expected, {1e-2, 1e-2}), "agrees");
  EXPECT_EQ(problem(f32({0.5}), only(f32({0.5001})), {1e-2, 1e-2}), "agrees")
      << "a single element does not vary";
}

TEST(Comparison, AddsTheTasksTolerance) {
  const expected_outputs expected = only(f32({3, 4}));  // of root mean square 3.54
  EXPECT_EQ(problem(f32({3.003, 4}), expected, {1e-3, 1e-4}), "agrees");
  EXPECT_NE(problem(f32({3.004, 4}), expected, {1e-3, 1e-4}), "agrees");
}

// Elements 450 to 550 of 1,000 have large errors; by chance, element 500 has a small one.
TEST(Comparison, AllowsTheErrorsOfTheElementsAroundIt) {
  const std::vector<double> ones(1000, 1.0);
  std::vector<double> noisy = ones;
  for (std::size_t i = 450; i < 550; ++i) noisy[i] += 1e-3;
  noisy[500] = 1;
  const expected_outputs expected = with_noise(f32(ones), {f32(noisy)});
  const auto off_at = [&](std::size_t i) {
    std::vector<double> actual = ones;
    actual[i] += 1e-4;
    return problem(f32(actual), expected);
  };
  EXPECT_EQ(off_at(500), "agrees");
  EXPECT_EQ(off_at(501), "agrees");
  EXPECT_NE(off_at(400), "agrees") << "most elements around it have small errors";
  EXPECT_NE(off_at(0), "agrees");
  EXPECT_NE(off_at(999), "agrees");
}

TEST(Comparison, SaysHowMuchRoundingAllowsATypicalElement) {
  const agreement found =
      compare_output(f32({2, 2.0001}), with_noise(f32({2, 2}), {f32({2.001, 2.001})}), 0);
  EXPECT_NEAR(found.allowed_share, of_an_element * 0.001 / 2, 1e-5);
}

TEST(Comparison, NamesWrongCountsShapesAndTypes) {
  task t;
  const expected_outputs expected = only(f32({1, 2}));
  const agreement missing = compare_outputs({}, expected, t);
  EXPECT_THAT(missing.problem.value_or(""), HasSubstr("0 outputs, expected 1"));
  EXPECT_TRUE(missing.is_malformed) << "no evidence can change that";
  EXPECT_THAT(compare_outputs({f32({1, 2, 3})}, expected, t).problem.value_or(""),
              HasSubstr("is float32[3], expected float32[2]"));
  EXPECT_THAT(compare_outputs({f64({1, 2})}, expected, t).problem.value_or(""),
              HasSubstr("is float64[2], expected float32[2]"));
  EXPECT_FALSE(compare_outputs({f32({1, 2})}, expected, t).problem);
  EXPECT_FALSE(compare_outputs({f32({1, 3})}, expected, t).is_malformed);
}

TEST(Comparison, EmptyOutputsAgree) { EXPECT_EQ(problem(f32({}), only(f32({}))), "agrees"); }

}  // namespace
}  // namespace hone
