#pragma once

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

namespace hone {

// A call of the host program as a CUDA graph, bound to the addresses with which it was captured.
// Owns the executable graph. Includes LibTorch: only for sources of the sandbox programs.
class captured_call {
 public:
  // Instantiates `graph` and destroys it. Throws c10::Error.
  captured_call(cudaGraph_t graph, std::vector<at::Tensor> outputs) : outputs_(std::move(outputs)) {
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    C10_CUDA_CHECK(status);
  }
  captured_call(captured_call&& other) noexcept
      : executable_(std::exchange(other.executable_, nullptr)),
        outputs_(std::move(other.outputs_)) {}
  captured_call& operator=(captured_call&&) = delete;
  ~captured_call() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }
  void upload(cudaStream_t stream) const { C10_CUDA_CHECK(cudaGraphUpload(executable_, stream)); }
  void replay(cudaStream_t stream) const { C10_CUDA_CHECK(cudaGraphLaunch(executable_, stream)); }
  const std::vector<at::Tensor>& outputs() const { return outputs_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
  std::vector<at::Tensor> outputs_;
};

}  // namespace hone
