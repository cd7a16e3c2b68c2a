#pragma once

#include <filesystem>
#include <memory>
#include <regex>
#include <string>

#include "evaluation/cuda/gpus.hpp"
#include "evaluation/devices/cores.hpp"
#include "evaluation/devices/cuda_device.hpp"
#include "evaluation/evaluator.hpp"

namespace hone::testing_support {

// The machine's first GPU as a device, and an evaluator on it; made once a program. Without a GPU
// there is only the reason.
class gpu_bench {
 public:
  static gpu_bench& instance() {
    static gpu_bench bench;
    return bench;
  }
  // Why there is no GPU to test on. Empty: there is one.
  const std::string& reason() const { return reason_; }
  // A machine that has a GPU and cannot use it fails its tests.
  bool is_broken() const { return !reason_.empty() && is_there_; }
  const gpu_facts& facts() const { return facts_; }
  judging_device& device() {
    if (device_ == nullptr)
      device_ =
          make_cuda_device(facts_, {.node = "test", .judge = {.core = reserve_launching_core()}});
    return *device_;
  }
  evaluator& judge() {
    if (judge_ == nullptr) judge_ = std::make_unique<evaluator>(device());
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
  std::unique_ptr<judging_device> device_;
  std::unique_ptr<evaluator> judge_;
};

}  // namespace hone::testing_support

// At the top of a test that needs a GPU.
#define HONE_NEEDS_A_GPU()                                                             \
  if (const auto& gpu = hone::testing_support::gpu_bench::instance(); gpu.is_broken()) \
    FAIL() << "a GPU is there, but " << gpu.reason();                                  \
  else if (!gpu.reason().empty())                                                      \
  GTEST_SKIP() << "no GPU to test on: " << gpu.reason()
