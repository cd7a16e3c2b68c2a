#pragma once

#include <filesystem>
#include <memory>
#include <regex>
#include <string>

#include "cuda/gpus.hpp"
#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cuda/cuda_device.hpp"
#include "tests/support/evaluator.hpp"

namespace hone::testing_support {

// The machine's first GPU as a device, and an evaluator on it. There is one bench per process. The
// device and the evaluator are made at their first use. Without a usable GPU, only reason() and
// is_broken() may be called.
class gpu_bench {
 public:
  static gpu_bench& instance() {
    static gpu_bench bench;
    return bench;
  }
  // Returns the reason for which there is no GPU to test on; empty if there is one.
  const std::string& reason() const { return reason_; }
  // Returns true if the machine has a GPU but cannot use it. Tests fail on such a machine.
  bool is_broken() const { return !reason_.empty() && is_there_; }
  const gpu_facts& facts() const { return facts_; }
  device& device_under_test() {
    if (device_ == nullptr)
      device_ = make_cuda_device(facts_,
                                 {.node = "test", .judge = {.launch_core = reserve_launch_core()}});
    return *device_;
  }
  evaluator& judge() {
    if (judge_ == nullptr) judge_ = std::make_unique<evaluator>(device_under_test());
    return *judge_;
  }

 private:
  gpu_bench() {
    try {
      const auto gpus = find_gpus();
      if (gpus.empty()) {
        reason_ = "the driver sees no GPU";
      } else {
        facts_ = gpus.front();
      }
    } catch (const std::runtime_error& e) {
      reason_ = e.what();
      for (const auto& entry : std::filesystem::directory_iterator("/dev"))
        is_there_ = is_there_ ||
                    std::regex_match(entry.path().filename().string(), std::regex("nvidia[0-9]+"));
    }
  }

  std::string reason_;
  bool is_there_ = false;
  gpu_facts facts_;
  std::unique_ptr<device> device_;
  std::unique_ptr<evaluator> judge_;
};

}  // namespace hone::testing_support

// Belongs at the top of a test that needs a GPU: skips the test if there is none, and fails it if
// the GPU cannot be used.
#define HONE_NEEDS_A_GPU()                                                             \
  if (const auto& gpu = hone::testing_support::gpu_bench::instance(); gpu.is_broken()) \
    FAIL() << "a GPU is there, but " << gpu.reason();                                  \
  else if (!gpu.reason().empty())                                                      \
  GTEST_SKIP() << "no GPU to test on: " << gpu.reason()
