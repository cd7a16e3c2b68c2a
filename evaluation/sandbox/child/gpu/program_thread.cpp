#include "evaluation/sandbox/child/gpu/program_thread.hpp"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <thread>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {

void on_a_thread(const std::function<void()>& work) {
  std::exception_ptr problem;
  std::thread([&] {
    try {
      const c10::InferenceMode no_gradients;
      at::set_num_threads(1);
      C10_CUDA_CHECK(cudaSetDevice(0));  // otherwise the driver's own calls find no context
      torchscript_program::enter_thread();
      work();
    } catch (...) {
      problem = std::current_exception();
    }
  }).join();
  if (problem) std::rethrow_exception(problem);
}

}  // namespace hone
