#include "evaluation/program/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hone {
namespace {

TEST(Half, RoundTripsEveryBitPattern) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(float_to_half(value), bits);
  }
}

TEST(Half, RoundsToNearestEvenAndOverflowsToInfinity) {
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3c00);  // a tie goes to the even neighbor
  EXPECT_EQ(float_to_half(1.0F + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(float_to_half(65504.0F), 0x7bff);
  EXPECT_EQ(float_to_half(65519.99F), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25F), 0);
  EXPECT_EQ(float_to_half(0x1.8p-25F), 1);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
}

TEST(Bfloat16, RoundTripsAndRounds) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bfloat16_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(float_to_bfloat16(value), bits);
  }
  EXPECT_EQ(float_to_bfloat16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(1.0F + 3 * 0x1p-8F), 0x3f82);
}

TEST(Conversion, TruncatesIntegersTowardZeroAndMakesBools) {
  EXPECT_EQ(to_doubles(from_doubles({-1.9, 1.9, 1e30}, {dtype::int32, {3}})),
            (std::vector<double>{-1, 1, std::numeric_limits<std::int32_t>::max()}));
  EXPECT_EQ(to_doubles(from_doubles({0, -0.5, 3}, {dtype::boolean, {3}})),
            (std::vector<double>{0, 1, 1}));
}

TEST(Conversion, WideningKeepsFloatsExactlyAndLeavesIntegers) {
  const tensor_value narrow = from_doubles({1.1, -2.5e-40, 3e38}, {dtype::float32, {3}});
  EXPECT_EQ(to_doubles(convert_floating(narrow, dtype::float64)), to_doubles(narrow));
  const tensor_value whole = from_doubles({1, 2}, {dtype::int64, {2}});
  EXPECT_EQ(convert_floating(whole, dtype::float64).layout.type, dtype::int64);
}

TEST(Layout, PrintsItsTypeAndSizesAndCountsBytesAndElements) {
  const tensor_layout layout{dtype::float16, {3, 5}};
  EXPECT_EQ(layout.bytes(), 30U);
  EXPECT_EQ(print_layout(layout), "float16[3, 5]");
  EXPECT_EQ((tensor_layout{dtype::float32, {}}).elements(), 1U);
}

}  // namespace
}  // namespace hone
