#include "benchmarks/gpu_device.hpp"

#include <stdexcept>

#include "cuda/gpus.hpp"
#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cuda/cuda_device.hpp"

namespace hone::benchmark {

std::unique_ptr<device> open_gpu() {
  const auto gpus = find_gpus();
  if (gpus.empty()) throw std::runtime_error("there is no GPU");
  return make_cuda_device(gpus.front(),
                          {.node = "benchmark", .judge = {.launch_core = reserve_launch_core()}});
}

}  // namespace hone::benchmark
