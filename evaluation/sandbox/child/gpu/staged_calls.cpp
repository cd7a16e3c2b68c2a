#include "evaluation/sandbox/child/gpu/staged_calls.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <capnp/any.h>
#include <cuda_runtime_api.h>

#include "evaluation/sandbox/child/common/random_factors.hpp"
#include "evaluation/sandbox/child/common/replies.hpp"
#include "evaluation/sandbox/child/common/study.hpp"

namespace hone {

void await_device() {
  C10_CUDA_CHECK(cudaDeviceSynchronize());
  C10_CUDA_CHECK(cudaGetLastError());
}

void staged_calls::open(schema::Open::Reader request) {
  uses_graph_ = request.getCudaGraph();
  for (const auto program : request.getPrograms()) {
    programs_.emplace_back(program.getSource().cStr(), program.getInputs(),
                           program.getParameters());
    prepared_.emplace_back();
  }
  if (!request.getJudgesCandidate() && request.getCompiled().size() > 0)
    compiled_.emplace(request.getCompiled().cStr());
}

void staged_calls::close() {
  forget();
  studies_need_room_ = false;
  prepared_.clear();
  compiled_.reset();
  programs_.clear();
}

void staged_calls::forget() {
  forget_request();
  graphs_.clear();
  stacks_.clear();
}

at::Tensor staged_calls::tensor(schema::Layout::Reader layout, std::uint64_t offset) const {
  if (offset > memory_->bytes())
    throw program_error(Outcome::INFRASTRUCTURE, "a tensor lies outside the arena");
  return tensor_at(memory_->base() + offset, memory_->bytes() - offset, layout, true);
}

void staged_calls::prepare(schema::StageCalls::Reader request) {
  std::vector<at::Tensor> parameters;
  for (unsigned i = 0; i < request.getParameters().size(); ++i)
    parameters.push_back(tensor(request.getParameters()[i], request.getParameterOffsets()[i]));
  tools_->spoil_shared_memory(streams_->main());
  streams_->begin();
  prepared_[program_] = programs_[program_].prepare(parameters);
  await_device();
}

void staged_calls::stage(schema::StageCalls::Reader request) {
  memory_->head().output_count = 0;
  if (captured_for_ &&
      capnp::AnyStruct::Reader(*captured_for_) == capnp::AnyStruct::Reader(request))
    return;
  forget();
  program_ = request.getProgram();
  row_major_outputs_ = request.getRowMajorOutputs();
  if (request.getParametersChanged()) prepared_.at(program_).reset();
  memory_->ledger().reset(request.getScratchBegin(), request.getScratchEnd());
  auto& prepared = prepared_.at(program_);
  if (!prepared) prepare(request);
  inputs_.clear();
  for (const auto call : request.getCalls()) {
    std::vector<c10::IValue> stack;
    inputs_.emplace_back();
    stack.reserve(request.getInputs().size() + prepared->size());
    for (unsigned i = 0; i < request.getInputs().size(); ++i) {
      const at::Tensor input = tensor(request.getInputs()[i], call.getInputOffsets()[i]);
      inputs_.back().emplace_back(reinterpret_cast<CUdeviceptr>(input.data_ptr()), input.nbytes());
      stack.emplace_back(input);
    }
    stack.insert(stack.end(), prepared->begin(), prepared->end());
    stacks_.push_back(std::move(stack));
  }
  calls_begin_ = memory_->ledger().end_of_used();
  calls_end_ = request.getScratchEnd();
  if (!uses_graph_) return;
  if (at::globalContext().benchmarkCuDNN() && !stacks_.empty()) tune();
  for (const auto& stack : stacks_) graphs_.push_back(capture(stack));
  if (!request.getParametersChanged()) captured_for_ = copy_record<schema::StageCalls>(request);
}

std::vector<at::Tensor> staged_calls::forward(std::vector<c10::IValue>& arguments) {
  if (compiled_ && program_ == 0) return compiled_->forward(std::exchange(arguments, {}));
  return programs_[program_].forward(arguments, row_major_outputs_);
}

void staged_calls::tune() {
  try {
    memory_->outside_of_the_arena([this] {
      std::vector<c10::IValue> arguments = stacks_.front();
      streams_->begin();
      forward(arguments);
      streams_->end();
      await_device();
    });
  } catch (const c10::OutOfMemoryError&) {
    cudaGetLastError();  // the capture may have room in the arena
  }
}

captured_call staged_calls::capture(std::vector<c10::IValue> stack) {
  streams_->begin();
  C10_CUDA_CHECK(cudaStreamBeginCapture(streams_->main(), cudaStreamCaptureModeThreadLocal));
  std::vector<at::Tensor> outputs;
  cudaGraph_t graph = nullptr;
  try {
    outputs = forward(stack);
    streams_->end();
  } catch (const std::exception&) {
    cudaStreamEndCapture(streams_->main(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    streams_->begin();
    throw;
  }
  C10_CUDA_CHECK(cudaStreamEndCapture(streams_->main(), &graph));
  captured_call captured(graph, std::move(outputs));
  captured.upload(streams_->main());  // the first replay would do it otherwise
  return captured;
}

std::vector<at::Tensor> staged_calls::call(std::size_t index) {
  if (uses_graph_) {
    graphs_.at(index).replay(streams_->main());
    return graphs_[index].outputs();
  }
  std::vector<c10::IValue> arguments = stacks_.at(index);
  streams_->begin();
  auto outputs = forward(arguments);
  streams_->end();
  return outputs;
}

std::vector<at::Tensor> staged_calls::call_in_same_place(std::size_t index) {
  if (!uses_graph_) memory_->ledger().reset(calls_begin_, calls_end_);
  return call(index);
}

std::uint64_t staged_calls::study(schema::StudyCalls::Reader request,
                                  std::vector<std::vector<at::Tensor>>& outputs) {
  const auto forward = [this](std::vector<c10::IValue>& arguments) {
    streams_->begin();
    auto made = programs_[program_].forward(arguments, row_major_outputs_);
    streams_->end();
    return made;
  };
  memory_->outside_of_the_arena([] { make_factors(at::kCUDA); });
  if (!studies_need_room_) {
    try {
      return study_call(request, forward, stacks_.at(0), outputs);
    } catch (const c10::OutOfMemoryError&) {
      outputs.clear();
      studies_need_room_ = true;
    }
  }
  const auto roomy_forward = [&](std::vector<c10::IValue>& arguments) {
    std::vector<at::Tensor> made;
    memory_->outside_of_the_arena([&] { made = forward(arguments); });
    for (at::Tensor& output : made) output = output.clone();
    return made;
  };
  return study_call(request, roomy_forward, stacks_.at(0), outputs);
}

void staged_calls::make_readable(std::size_t index,
                                 const capnp::List<std::uint64_t>::Reader& keys) const {
  for (unsigned i = 0; i < inputs_.at(index).size(); ++i)
    tools_->make_readable(inputs_[index][i].first, inputs_[index][i].second, keys[i],
                          streams_->main());
}

}  // namespace hone
