#include "evaluation/backends/cuda/cuda_device.hpp"

#include "evaluation/backends/judging_device.hpp"

namespace hone {

std::unique_ptr<device> make_cuda_device(const gpu_facts& facts,
                                         const cuda_device_options& options) {
  const std::string name =
      options.name.empty() ? "cuda:" + std::to_string(facts.ordinal) : options.name;
  return std::make_unique<judging_device>(name, options.node, facts.type,
                                          std::make_unique<cuda_judge>(facts, options.judge));
}

}  // namespace hone
