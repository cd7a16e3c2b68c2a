#include "evaluation/judge/random_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hone {
namespace {

struct moments {
  double mean = 0;
  double variance = 0;
  double fourth = 0;
  double largest = 0;
};

moments moments_of(const std::vector<float>& x) {
  moments m;
  for (const float v : x) m.mean += v / static_cast<double>(x.size());
  for (const float v : x) {
    const double d = v - m.mean;
    m.variance += d * d / static_cast<double>(x.size());
    m.fourth += d * d * d * d / static_cast<double>(x.size());
    m.largest = std::max(m.largest, std::abs(d));
  }
  return m;
}

TEST(RandomStream, NormalsHaveTheMomentsOfTheNormalDistribution) {
  std::vector<float> x(1 << 20);
  random_stream(11).fill_normal(x);
  const moments m = moments_of(x);
  // The three limits are five standard errors of a million draws.
  EXPECT_NEAR(m.mean, 0, 0.005);
  EXPECT_NEAR(m.variance, 1, 0.007);
  EXPECT_NEAR(m.fourth, 3, 0.05);
  EXPECT_GT(m.largest, 4.2);
  EXPECT_LT(m.largest, 6.0);
  std::sort(x.begin(), x.end());
  EXPECT_NEAR(x[x.size() / 2], 0, 0.006);
  EXPECT_NEAR(x[static_cast<std::size_t>(0.975 * static_cast<double>(x.size()))], 1.95996, 0.02);
}

TEST(RandomStream, NeighborsAreUncorrelated) {
  std::vector<float> x(1 << 20);
  random_stream(12).fill_normal(x);
  double pairs = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) pairs += x[i] * x[i + 1];
  EXPECT_NEAR(pairs / static_cast<double>(x.size()), 0, 0.005);
}

TEST(RandomStream, UniformsFillTheUnitInterval) {
  std::vector<float> x(1 << 18);
  random_stream(13).fill_uniform(x);
  const moments m = moments_of(x);
  EXPECT_NEAR(m.mean, 0.5, 0.003);
  EXPECT_NEAR(m.variance, 1.0 / 12, 0.002);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), 0.0F);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 1.0F);
}

TEST(RandomStream, IntegersCoverTheirRangeEvenly) {
  std::vector<std::int64_t> x(70000);
  random_stream(14).fill_integers(x, -3, 4);
  std::vector<int> counts(7);
  for (const std::int64_t v : x) {
    ASSERT_GE(v, -3);
    ASSERT_LT(v, 4);
    ++counts[static_cast<std::size_t>(v + 3)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomStream, EqualSeedsAloneGiveEqualValues) {
  std::vector<float> a(1000);
  std::vector<float> b(1000);
  random_stream(5).fill_normal(a);
  random_stream(5).fill_normal(b);
  EXPECT_EQ(a, b);
  random_stream(6).fill_normal(b);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace hone
