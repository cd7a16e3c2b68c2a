#include "evaluation/sandbox/child/gpu/compiled_program.hpp"

#include <torch/csrc/inductor/aoti_runner/model_container_runner_cuda.h>

#include <exception>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {

compiled_program::compiled_program(const std::string& file) try
    : runner_(std::make_unique<torch::inductor::AOTIModelContainerRunnerCuda>(file)) {
} catch (const std::exception& e) {
  throw program_error(Outcome::COMPILE_ERROR, file + " cannot be loaded: " + e.what());
}

compiled_program::~compiled_program() = default;

std::vector<at::Tensor> compiled_program::forward(const std::vector<c10::IValue>& arguments) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(arguments.size());
  for (const c10::IValue& argument : arguments) tensors.push_back(argument.toTensor());
  return runner_->boxed_run(std::move(tensors));
}

}  // namespace hone
