#include "cuda/management.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(GpuManagement, NamesTheReasonsForThrottling) {
  EXPECT_EQ(describe_throttling(0), "");
  EXPECT_EQ(describe_throttling(0x1), "") << "idle";
  EXPECT_EQ(describe_throttling(0x4), "") << "the power limit affects both sides equally";
  EXPECT_EQ(describe_throttling(0x40), "hardware thermal");
  EXPECT_EQ(describe_throttling(0x20 | 0x80 | 0x4), "software thermal, power brake");
}

TEST(GpuManagement, ReturnsZerosForAnAbsentGpu) {
  const gpu_management none("ffffffff:ff:1f.7");
  EXPECT_EQ(none.clock_mhz(), 0);
  EXPECT_EQ(none.temperature_c(), 0);
  EXPECT_EQ(none.throttled_by(), "");
}

}  // namespace
}  // namespace hone
