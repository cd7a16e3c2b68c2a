#include "evaluation/sandbox/child/cpu/session.hpp"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "evaluation/sandbox/arena.hpp"
#include "evaluation/sandbox/child/common/replies.hpp"
#include "evaluation/sandbox/child/common/study.hpp"
#include "evaluation/sandbox/child/cpu/arena_allocator.hpp"
#include "evaluation/sandbox/child/cpu/confinement.hpp"
#include "evaluation/sandbox/child/cpu/kernel_process.hpp"
#include "evaluation/sandbox/child/cpu/shared_heap.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

class session {
 public:
  session(int socket, int arena) : socket_(socket) {
    if (arena < 0) return;
    struct stat facts {};
    fstat(arena, &facts);
    bytes_ = static_cast<std::uint64_t>(facts.st_size);
    base_ = reinterpret_cast<char*>(map_arena(arena, bytes_));
    allocator_ = new arena_allocator;  // never deleted: tensors may outlive the session
    allocator_->attach(base_, bytes_);
    c10::SetCPUAllocator(allocator_, 100);
    close(arena);
  }

  // Starts the process of the candidate's kernels, whose shared object is the descriptor `object`.
  // Must be called before the session is confined.
  const kernel_process& start_kernels(int object, std::uint64_t private_bytes) {
    if (base_ == nullptr) throw std::runtime_error("a session without an arena runs no kernels");
    // The arena holds what prepare() is given; its results and what it needs on the way may be
    // larger. Never deleted, as the allocator.
    allocator_->attach_heap(new shared_heap(2 * bytes_));
    kernels_.emplace(object, allocator_->head(), private_bytes);
    return *kernels_;
  }

  std::uint32_t* refused_call() const {
    return base_ != nullptr ? &allocator_->head().refused_call : nullptr;
  }

  void handle(schema::Command::Reader command) {
    switch (command.which()) {
      case schema::Command::OPEN:
        open(command.getOpen());
        break;
      case schema::Command::STAGE:
        stage(command.getStage());
        break;
      case schema::Command::GO:
        go();
        break;
      case schema::Command::STUDY:
        study(command.getStudy());
        break;
      default:
        throw program_error(Outcome::INFRASTRUCTURE, "a session does not support this command");
    }
  }

 private:
  void open(schema::Open::Reader request) {
    for (const auto program : request.getPrograms()) {
      programs_.emplace_back(program.getSource().cStr(), program.getInputs(),
                             program.getParameters());
      prepared_.emplace_back();
    }
    if (kernels_) {
      kernels_->await_kernels();
      torchscript_program::set_launcher(&*kernels_);
    } else if (request.getJudgesCandidate()) {
      torchscript_program::set_launcher(&nothing_);
    }
    send_opened(socket_, programs_.front(), kernels_ ? kernels_->pid() : 0);
  }

  at::Tensor tensor(schema::Layout::Reader layout, std::uint64_t offset) const {
    if (base_ == nullptr || offset > bytes_)
      throw program_error(Outcome::INFRASTRUCTURE, "a tensor lies outside the arena");
    return tensor_at(base_ + offset, bytes_ - offset, layout, false);
  }

  void stage(schema::StageCalls::Reader request) {
    outputs_.clear();
    stacks_.clear();
    program_ = request.getProgram();
    row_major_outputs_ = request.getRowMajorOutputs();
    allocator_->head().output_count = 0;
    if (kernels_) kernels_->begin_run(request.getPoison());
    auto& prepared = prepared_.at(program_);
    if (!prepared || request.getParametersChanged()) {
      std::vector<at::Tensor> parameters;
      for (unsigned i = 0; i < request.getParameters().size(); ++i)
        parameters.push_back(tensor(request.getParameters()[i], request.getParameterOffsets()[i]));
      // The results of prepare() outlive this stage's scratch memory, so they are allocated on the
      // heap.
      allocator_->reset(0, 0, 0);
      prepared = programs_[program_].prepare(parameters);
      if (kernels_) kernels_->synchronize();
    }
    allocator_->reset(request.getScratchBegin(), request.getPoisonedEnd(), request.getScratchEnd(),
                      request.getPoison());
    for (const auto call : request.getCalls()) {
      std::vector<c10::IValue> stack;
      stack.reserve(request.getInputs().size() + prepared->size());
      for (unsigned i = 0; i < request.getInputs().size(); ++i)
        stack.emplace_back(tensor(request.getInputs()[i], call.getInputOffsets()[i]));
      stack.insert(stack.end(), prepared->begin(), prepared->end());
      stacks_.push_back(std::move(stack));
    }
    outputs_.reserve(stacks_.size());
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setStaged(); });
  }

  void go() {
    torchscript_program& program = programs_.at(program_);
    for (auto& stack : stacks_) {
      receive_message(socket_);
      outputs_.push_back(program.forward(stack, row_major_outputs_));
      if (kernels_) kernels_->synchronize();
      send_message(socket_, {});
    }
    if (kernels_ && kernels_->shared_overrun())
      throw program_error(Outcome::CRASH,
                          "a kernel wrote beyond the dynamic shared memory that it asked for");
    describe_all_outputs();
    send_message(socket_, done_);
  }

  void study(schema::StudyCalls::Reader request) {
    if (kernels_) throw program_error(Outcome::INFRASTRUCTURE, "a candidate cannot be studied");
    torchscript_program& program = programs_.at(program_);
    allocator_->head().decisions = study_call(
        request,
        [&](std::vector<c10::IValue>& arguments) {
          return program.forward(arguments, row_major_outputs_);
        },
        stacks_.at(0), outputs_);
    describe_all_outputs();
    send_message(socket_, done_);
  }

  void describe_all_outputs() {
    describe_outputs(allocator_->head(), outputs_, [this](const at::Tensor& t) {
      return allocator_->contains(t.data_ptr()) ? allocator_->offset_of(t.data_ptr())
                                                : not_in_arena;
    });
  }

  static std::vector<char> done_message() {
    record_builder<schema::Reply> message;
    message->setDone();
    return message.finish().bytes();
  }

  struct no_kernels final : kernel_launcher {
    void launch(const std::string& kernel, const std::vector<std::int64_t>&,
                const std::vector<std::int64_t>&, std::int64_t,
                const std::vector<c10::IValue>&) override {
      throw program_error(Outcome::LAUNCH_ERROR,
                          "there is no cuda block, so no __global__ function '" + kernel + "'");
    }
  };

  int socket_;
  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  arena_allocator* allocator_ = nullptr;
  no_kernels nothing_;
  std::optional<kernel_process> kernels_;
  std::vector<torchscript_program> programs_;
  std::vector<std::optional<std::vector<c10::IValue>>> prepared_;
  std::uint32_t program_ = 0;
  std::uint64_t row_major_outputs_ = 0;
  std::vector<std::vector<c10::IValue>> stacks_;
  std::vector<std::vector<at::Tensor>> outputs_;
  std::vector<char> done_ = done_message();  // built before the clock starts
};

}  // namespace

void serve_session(int socket, int arena, std::uint64_t private_bytes) {
  try {
    const c10::InferenceMode no_gradients;
    session served(socket, arena);
    // The shared object's descriptor comes with the first command. That command is received before
    // the filter is installed, because a confined process starts no other.
    received_message first = receive_with_descriptors(socket);
    if (first.descriptors.empty()) {
      confine(socket, 0, -1, private_bytes, served.refused_call());
    } else {
      const kernel_process& kernels =
          served.start_kernels(first.descriptors.front().get(), private_bytes);
      first.descriptors.clear();
      confine(socket, kernels.pid(), -1, private_bytes, served.refused_call());
    }
    std::vector<char> bytes = std::move(first.bytes);
    while (true) {
      try {
        served.handle(*record<schema::Command>::from_bytes(std::move(bytes)));
      } catch (const connection_lost&) {
        _exit(0);
      } catch (const std::exception& e) {
        send_failure(socket, e);
      }
      bytes = receive_message(socket)->bytes;
    }
  } catch (const connection_lost&) {
    _exit(0);
  } catch (const std::exception& e) {
    try {
      send_failure(socket, program_error(Outcome::INFRASTRUCTURE, e.what()));
    } catch (const std::exception&) {
    }
    _exit(1);
  }
}

}  // namespace hone
