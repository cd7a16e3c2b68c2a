#pragma once

#include <memory>
#include <string>

#include "cuda/gpus.hpp"
#include "evaluation/backends/cuda/cuda_judge.hpp"
#include "evaluation/backends/device.hpp"

namespace hone {

struct cuda_device_options {
  std::string node{};
  std::string name{};  // as measurements name the device; empty: cuda:ORDINAL
  cuda_judge_options judge{};
};

// Makes a device of one GPU. Must be called on the thread that will use the device. Throws
// std::runtime_error.
std::unique_ptr<device> make_cuda_device(const gpu_facts& facts,
                                         const cuda_device_options& options);

}  // namespace hone
