#pragma once

#include <memory>
#include <string>

#include "evaluation/cuda/gpus.hpp"
#include "evaluation/devices/cuda_judge.hpp"
#include "evaluation/devices/judging_device.hpp"

namespace hone {

struct cuda_device_options {
  std::string node{};
  std::string name{};  // what measurements call it; empty: cuda:ORDINAL
  cuda_judge_options judge{};
};

// Makes a device of one GPU. It must be made on the thread that will use it. Throws
// std::runtime_error.
std::unique_ptr<judging_device> make_cuda_device(const gpu_facts& facts,
                                                 const cuda_device_options& options);

}  // namespace hone
