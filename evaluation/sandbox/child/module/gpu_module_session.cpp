#include "evaluation/sandbox/child/module/gpu_module_session.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/child/common/replies.hpp"
#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "evaluation/sandbox/child/module/confinement.hpp"
#include "evaluation/sandbox/child/module/module_runner.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"
#include "process/framing.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

constexpr std::uint64_t private_bytes = 8ULL << 30U;  // of host memory
constexpr std::uint64_t open_files = 1024;            // CUDA has dozens

template <class Handle>
Handle handle_in(capnp::Data::Reader bytes) {
  Handle handle{};
  if (bytes.size() != sizeof handle)
    throw program_error(Outcome::INFRASTRUCTURE, "a handle of the judge is damaged");
  std::memcpy(&handle, bytes.begin(), sizeof handle);
  return handle;
}

// Inputs lie in the arena. What the module allocates lies in memory of PyTorch's own allocator, so
// that graphs, streams and kept tensors work as usual. Outputs are copied to the arena's scratch
// memory at the end of each call.
class gpu_module_session {
 public:
  gpu_module_session(const module_hooks& hooks, int socket) : runner_(hooks), socket_(socket) {}

  void attach(schema::Attach::Reader request, const std::vector<unique_fd>& descriptors) {
    void* head = mmap(nullptr, arena_head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      descriptors.at(0).get(), 0);
    if (head == MAP_FAILED)
      throw program_error(Outcome::INFRASTRUCTURE, "the arena's head cannot be mapped");
    head_ = static_cast<arena_head*>(head);
    void* base = nullptr;
    C10_CUDA_CHECK(cudaIpcOpenMemHandle(&base, handle_in<cudaIpcMemHandle_t>(request.getHandle()),
                                        cudaIpcMemLazyEnablePeerAccess));
    base_ = static_cast<char*>(base);
    bytes_ = request.getBytes();
    C10_CUDA_CHECK(
        cudaIpcOpenEventHandle(&begins_, handle_in<cudaIpcEventHandle_t>(request.getBegins())));
  }

  void handle(schema::Command::Reader command) {
    switch (command.which()) {
      case schema::Command::OPEN:
        return open(command.getOpen());
      case schema::Command::STAGE:
        return stage(command.getStage());
      case schema::Command::GO:
        return go();
      case schema::Command::TAKE_TURNS:
        return take_turns();
      default:
        throw program_error(Outcome::INFRASTRUCTURE,
                            "the session of a module does not support this command");
    }
  }

 private:
  void open(schema::Open::Reader request) {
    runner_.load(request);
    await_device();
    send_opened_module(socket_, request);
  }

  at::Tensor tensor(schema::Layout::Reader layout, std::uint64_t offset) const {
    if (offset > bytes_)
      throw program_error(Outcome::INFRASTRUCTURE, "a tensor lies outside the arena");
    return tensor_at(base_ + offset, bytes_ - offset, layout, true);
  }

  void stage(schema::StageCalls::Reader request) {
    row_major_outputs_ = request.getRowMajorOutputs();
    next_ = arena_aligned(request.getScratchBegin()) + guard_bytes;
    end_ = request.getScratchEnd();
    head_->output_count = head_->allocation_count = head_->launch_count = 0;
    head_->scratch_used = next_;
    if (request.getParametersChanged()) {
      runner_.make(request.getSeed());
      runner_.show_parameters(request,
                              [this](auto layout, auto offset) { return tensor(layout, offset); });
    }
    std::vector<at::Tensor> inputs;
    for (const auto call : request.getCalls()) {
      for (unsigned i = 0; i < request.getInputs().size(); ++i)
        inputs.push_back(tensor(request.getInputs()[i], call.getInputOffsets()[i]));
    }
    runner_.stage(request.getCalls().size(), inputs);
    calls_ = request.getCalls().size();
    await_device();
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setStaged(); });
  }

  bool is_in_arena(const at::Tensor& t) const {
    const char* at = static_cast<const char*>(t.data_ptr());
    return at >= base_ && at < base_ + bytes_;
  }

  // Returns a copy of an output in the arena. Views of inputs stay where they are.
  at::Tensor committed(const at::Tensor& output) {
    if (!output.is_cuda()) throw program_error(Outcome::CRASH, "an output is not on the GPU");
    if (output.numel() == 0 || is_in_arena(output)) return output;
    const at::Tensor dense = output.is_non_overlapping_and_dense() ? output : output.contiguous();
    if (dense.nbytes() > end_ || next_ > end_ - dense.nbytes())
      throw program_error(Outcome::CRASH, "out of memory for outputs");
    at::Tensor place =
        at::from_blob(base_ + next_, dense.sizes(), dense.strides(), dense.options());
    place.copy_(dense);
    next_ = arena_aligned(next_ + dense.nbytes()) + guard_bytes;
    head_->scratch_used = next_;
    return place;
  }

  // Copies the outputs of a call to the arena, and describes them in its head.
  void commit(const std::vector<at::Tensor>& made) {
    std::vector<at::Tensor> outputs;
    for (const at::Tensor& output : made) outputs.push_back(committed(output));
    describe_call(*head_, outputs, [this](const at::Tensor& t) {
      return t.numel() > 0 ? static_cast<std::uint64_t>(static_cast<char*>(t.data_ptr()) - base_)
                           : not_in_arena;
    });
  }

  void reply_done() {
    await_device();
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setDone(); });
  }

  void go() {
    for (std::size_t call = 0; call < calls_; ++call)
      commit(runner_.call(call, row_major_outputs_));
    reply_done();
  }

  // The times that are entered into the head count for the task's own module alone.
  void take_turns() {
    at::cuda::CUDAEvent begin(cudaEventDefault);
    at::cuda::CUDAEvent end(cudaEventDefault);
    for (std::size_t call = 0; call < calls_; ++call) {
      const std::atomic_ref turns(head_->turns);
      while (turns.load(std::memory_order_acquire) <= call) {
      }
      const at::cuda::CUDAStream stream = at::cuda::getCurrentCUDAStream();
      C10_CUDA_CHECK(cudaStreamWaitEvent(stream, begins_, 0));
      const auto launching = std::chrono::steady_clock::now();
      begin.record(stream);
      const std::vector<at::Tensor> made = runner_.call(call, row_major_outputs_);
      end.record(stream);
      commit(made);
      const std::chrono::duration<double, std::nano> launch =
          std::chrono::steady_clock::now() - launching;
      C10_CUDA_CHECK(cudaStreamSynchronize(stream));
      ++std::atomic_ref(head_->turns_taken);
      head_->call_clocks[call % max_calls] = {begin.elapsed_time(end) * 1e6, 0, launch.count(), 0};
    }
    reply_done();
  }

  static void await_device() {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    C10_CUDA_CHECK(cudaGetLastError());
  }

  module_runner runner_;
  int socket_;
  arena_head* head_ = nullptr;
  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  cudaEvent_t begins_ = nullptr;
  std::uint64_t row_major_outputs_ = 0;
  std::uint64_t next_ = 0;  // scratch memory from here on is free
  std::uint64_t end_ = 0;
  std::size_t calls_ = 0;
};

}  // namespace

void serve_gpu_module(const module_hooks& hooks, int socket) {
  gpu_module_session served(hooks, socket);
  received_message first = receive_with_descriptors(socket);
  const auto attach = record<schema::Command>::from_bytes(std::move(first.bytes));
  if (!attach->isAttach()) throw std::runtime_error("the first command must be attach");
  served.attach(attach->getAttach(), first.descriptors);
  confine_module({.private_bytes = private_bytes, .open_files = open_files});
  send_reply(socket, [](schema::Reply::Builder reply) { reply.setStaged(); });
  while (true) {
    const std::vector<char> bytes = receive_message(socket)->bytes;
    try {
      served.handle(*record<schema::Command>::from_bytes(bytes));
    } catch (const connection_lost&) {
      throw;
    } catch (const std::exception& e) {
      if (cudaDeviceSynchronize() != cudaSuccess) {
        const char* why = cudaGetErrorString(cudaGetLastError());
        send_failure(socket, program_error(Outcome::CRASH, std::string("a kernel failed: ") + why),
                     true);
        _exit(1);  // CUDA can release nothing any more
      }
      send_failure(socket, e);
    }
  }
}

}  // namespace hone
