#include "ui/html/numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace hone {
namespace {

TEST(NumbersTest, SpeedupsHaveThreeDigits) {
  EXPECT_EQ(speedup_text(2.5), "2.50x");
  EXPECT_EQ(speedup_text(9.994), "9.99x");
  EXPECT_EQ(speedup_text(9.996), "10.0x");
  EXPECT_EQ(speedup_text(25.04), "25.0x");
  EXPECT_EQ(speedup_text(99.96), "100x");
  EXPECT_EQ(speedup_text(1e6), "1000000x");
  EXPECT_EQ(speedup_text(1.5e9), "1.5e+09x");
  EXPECT_EQ(speedup_text(0.5), "0.50x");
  EXPECT_EQ(speedup_text(0.004), "0.0040x");
}

TEST(NumbersTest, NonFiniteNumbersAreADash) {
  for (const double value : {double{NAN}, double{INFINITY}, -double{INFINITY}, 0.0, -1.0}) {
    EXPECT_EQ(speedup_text(value), "-");
  }
  EXPECT_EQ(duration_text(NAN), "-");
  EXPECT_EQ(percent_text(INFINITY), "-");
  EXPECT_EQ(compact_text(NAN), "-");
  EXPECT_EQ(decimal_text(NAN, 2), "-");
}

TEST(NumbersTest, ZeroHasNoSign) {
  EXPECT_EQ(decimal_text(-0.001, 2), "0.00");
  EXPECT_EQ(decimal_text(-0.0, 0), "0");
  EXPECT_EQ(decimal_text(-0.1, 1), "-0.1");
}

TEST(NumbersTest, UnitsFollowTheSize) {
  EXPECT_EQ(duration_text(74.66), "74.7 µs");
  EXPECT_EQ(duration_text(999.4), "999 µs");
  EXPECT_EQ(duration_text(999.6), "1.00 ms");
  EXPECT_EQ(duration_text(1633), "1.63 ms");
  EXPECT_EQ(duration_text(2.5e6), "2.50 s");
  EXPECT_EQ(duration_text(119e6), "119 s");
  EXPECT_EQ(duration_text(600e6), "10.0 min");
  EXPECT_EQ(duration_text(8038e6), "2.23 h");
  EXPECT_EQ(percent_text(0.583), "58.3 %");
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(1551), "1,551");
  EXPECT_EQ(count_text(18446744073709551615U), "18,446,744,073,709,551,615");
  EXPECT_EQ(compact_text(950), "950");
  EXPECT_EQ(compact_text(12000), "12k");
  EXPECT_EQ(compact_text(1.5e6), "1.5M");
  EXPECT_EQ(compact_text(1e15), "1000T");
}

}  // namespace
}  // namespace hone
