#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cuda/nvrtc_library.hpp"
#include "policy/sampling/gpu_layers.hpp"

namespace hone {
namespace {

struct shape {
  const char* name;
  std::vector<std::string> macros;
};

class SamplingKernels : public testing::TestWithParam<shape> {};

// A machine without a GPU can still tell whether the kernels compile, and whether a thread of
// `attend` finds all its numbers in registers.
TEST_P(SamplingKernels, CompileForEveryArchitecture) {
  const nvrtc_library nvrtc;
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
    std::vector<std::string> options = {std::string("--gpu-architecture=") + architecture,
                                        "--std=c++17", "--ptxas-options=--warn-on-spills",
                                        "-DTABLE=256", "-DEPSILON=1e-6f"};
    for (const std::string& folder : nvrtc.include_folders()) options.push_back("-I" + folder);
    for (const std::string& macro : GetParam().macros) options.push_back("-D" + macro);
    const auto made =
        nvrtc.compile(gpu_layers::kernel_source(), options, gpu_layers::kernel_names());
    ASSERT_TRUE(made.compiled) << made.log;
    EXPECT_EQ(made.log.find("spill"), std::string::npos) << made.log;
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfKnownModels, SamplingKernels,
    testing::Values(shape{"SmolLM2_135M",
                          {"WIDTH=576", "HEADS=9", "KV_HEADS=3", "HEAD=64", "FEED=1536",
                           "VOCABULARY=49152", "ELEMENT=__nv_bfloat16", "MMA_TYPE=\"bf16\""}},
                    shape{"SmolLM2_135M_float16",
                          {"WIDTH=576", "HEADS=9", "KV_HEADS=3", "HEAD=64", "FEED=1536",
                           "VOCABULARY=49152", "ELEMENT=__half", "MMA_TYPE=\"f16\""}},
                    shape{"Qwen2_5_1_5B",
                          {"WIDTH=1536", "HEADS=12", "KV_HEADS=2", "HEAD=128", "FEED=8960",
                           "VOCABULARY=151936", "ELEMENT=__nv_bfloat16", "MMA_TYPE=\"bf16\""}},
                    shape{"HeadsOf32",
                          {"WIDTH=128", "HEADS=4", "KV_HEADS=4", "HEAD=32", "FEED=352",
                           "VOCABULARY=4096", "ELEMENT=__nv_bfloat16", "MMA_TYPE=\"bf16\""}},
                    shape{"HeadsOf96",
                          {"WIDTH=768", "HEADS=8", "KV_HEADS=2", "HEAD=96", "FEED=2048",
                           "VOCABULARY=4096", "ELEMENT=__nv_bfloat16", "MMA_TYPE=\"bf16\""}},
                    shape{"Qwen2_5_7B",
                          {"WIDTH=3584", "HEADS=28", "KV_HEADS=4", "HEAD=128", "FEED=18944",
                           "VOCABULARY=152064", "ELEMENT=__nv_bfloat16", "MMA_TYPE=\"bf16\""}}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace hone
