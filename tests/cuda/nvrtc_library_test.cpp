#include "cuda/nvrtc_library.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(NvrtcLibrary, CompilesForAnArchitectureAndReturnsTheLogOfWhatDoesNotCompile) {
  const nvrtc_library nvrtc;
  const std::string kernel = R"(extern "C" __global__ void twice(float* x) { *x *= FACTOR; })";
  const auto made = nvrtc.compile(kernel, {"--gpu-architecture=sm_90", "-DFACTOR=2"}, {"twice"});
  ASSERT_TRUE(made.compiled) << made.log;
  EXPECT_TRUE(
      made.code.starts_with("\x7f"
                            "ELF"));
  EXPECT_NE(made.ptx.find(".entry twice"), std::string::npos);
  const auto failed = nvrtc.compile(kernel, {"--gpu-architecture=sm_90"}, {"twice"});
  EXPECT_FALSE(failed.compiled);
  EXPECT_NE(failed.log.find("FACTOR"), std::string::npos);
}

}  // namespace
}  // namespace hone
