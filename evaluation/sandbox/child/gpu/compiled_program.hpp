#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

namespace torch::inductor {
class AOTIModelContainerRunnerCuda;
}

namespace hone {

// A reference that Inductor has compiled to a shared object (tasks/compiling/). Runs native code
// that the task's owner has made, so it must not be given a candidate's. Includes LibTorch: only
// for sources of the sandbox programs. Confined to one thread.
class compiled_program {
 public:
  // Throws program_error.
  explicit compiled_program(const std::string& file);
  ~compiled_program();

  // Puts a call on the current stream and returns the outputs in order.
  std::vector<at::Tensor> forward(const std::vector<c10::IValue>& arguments);

 private:
  std::unique_ptr<torch::inductor::AOTIModelContainerRunnerCuda> runner_;
};

}  // namespace hone
