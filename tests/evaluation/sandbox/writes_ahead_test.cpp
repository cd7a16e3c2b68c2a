#include "evaluation/sandbox/gpu/writes_ahead.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr double write_ns = 60e3;  // four times an H200's L2 cache

TEST(WritesAhead, OneIsEnoughForAFewLaunches) {
  EXPECT_EQ(writes_ahead(0, write_ns), 1);
  EXPECT_EQ(writes_ahead(10e3, write_ns), 1);
  EXPECT_EQ(writes_ahead(40e3, write_ns), 1);
  EXPECT_EQ(writes_ahead(90e3, 0), 1) << "how long one takes is not known yet";
}

TEST(WritesAhead, ManyLaunchesHaveHalfAsLongAgain) { EXPECT_EQ(writes_ahead(100e3, write_ns), 3); }

TEST(WritesAhead, NobodyWaitsForMoreThanFourTenthsOfAMillisecond) {
  EXPECT_EQ(writes_ahead(3e6, write_ns), 7);
  EXPECT_EQ(writes_ahead(1e9, write_ns), 7);
}

TEST(WritesAhead, OneHiccupIsForgotten) {
  double host_ns = host_ns_to_expect(20e3, 5e6);
  EXPECT_EQ(host_ns, most_ahead_ns);
  for (int call = 0; call < 30; ++call) host_ns = host_ns_to_expect(host_ns, 20e3);
  EXPECT_EQ(host_ns, 20e3);
}

}  // namespace
}  // namespace hone
