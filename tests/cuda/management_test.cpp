#include "cuda/management.hpp"

#include <gtest/gtest.h>

#include "cuda/gpus.hpp"

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

TEST(GpuTypes, AreNamedByTheirModels) {
  const auto named = [](const char* model) {
    const std::string name = gpu_type_name(model, 8, 0, "580.159.04");
    return name.substr(0, name.find("-sm80-580.159-cu"));
  };
  EXPECT_EQ(named("NVIDIA H100 80GB HBM3"), "h100-hbm3");
  EXPECT_EQ(named("NVIDIA A100-SXM4-80GB"), "a100-sxm4-80gb");
  EXPECT_EQ(named("Tesla V100-SXM2-16GB"), "v100-sxm2-16gb");
  EXPECT_EQ(named("NVIDIA GeForce RTX 4090"), "rtx-4090");
}

}  // namespace
}  // namespace hone
