#include "evaluation/sandbox/child/module/module_session.hpp"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/arena.hpp"
#include "evaluation/sandbox/child/common/replies.hpp"
#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "evaluation/sandbox/child/module/confinement.hpp"
#include "evaluation/sandbox/child/module/module_heap.hpp"
#include "evaluation/sandbox/child/module/module_runner.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

class module_session {
 public:
  module_session(const module_hooks& hooks, int socket, int arena)
      : runner_(hooks), socket_(socket) {
    if (arena < 0) return;
    struct stat facts {};
    fstat(arena, &facts);
    bytes_ = static_cast<std::uint64_t>(facts.st_size);
    base_ = reinterpret_cast<char*>(map_arena(arena, bytes_));
    heap_ = new module_heap(base_, module_heap_begin, bytes_);  // never deleted
    c10::SetCPUAllocator(heap_, 100);
    close(arena);
  }

  void handle(schema::Command::Reader command) {
    switch (command.which()) {
      case schema::Command::OPEN:
        return open(command.getOpen());
      case schema::Command::STAGE:
        return stage(command.getStage());
      case schema::Command::GO:
        return go();
      default:
        throw program_error(Outcome::INFRASTRUCTURE,
                            "the session of a module does not support this command");
    }
  }

 private:
  void open(schema::Open::Reader request) {
    runner_.load(request);
    send_opened_module(socket_, request);
  }

  at::Tensor tensor(schema::Layout::Reader layout, std::uint64_t offset) const {
    if (base_ == nullptr || offset > module_heap_begin)
      throw program_error(Outcome::INFRASTRUCTURE, "a tensor lies outside the arena");
    return tensor_at(base_ + offset, module_heap_begin - offset, layout, false);
  }

  void stage(schema::StageCalls::Reader request) {
    outputs_.clear();
    row_major_outputs_ = request.getRowMajorOutputs();
    head().output_count = 0;
    if (request.getParametersChanged()) {
      runner_.make(request.getSeed());
      runner_.show_parameters(request,
                              [&](auto layout, auto offset) { return tensor(layout, offset); });
    }
    std::vector<at::Tensor> inputs;
    for (const auto call : request.getCalls()) {
      for (unsigned i = 0; i < request.getInputs().size(); ++i)
        inputs.push_back(tensor(request.getInputs()[i], call.getInputOffsets()[i]));
    }
    runner_.stage(request.getCalls().size(), inputs);
    calls_ = request.getCalls().size();
    outputs_.reserve(calls_);
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setStaged(); });
  }

  void go() {
    for (std::size_t call = 0; call < calls_; ++call) {
      receive_message(socket_);
      outputs_.push_back(runner_.call(call, row_major_outputs_));
      // Memory that torch did not allocate, NumPy's for example, is not the judge's to read.
      for (at::Tensor& output : outputs_.back()) {
        if (output.numel() > 0 && !heap_->contains(output.data_ptr())) output = output.clone();
      }
      describe_call(head(), outputs_.back(), [this](const at::Tensor& t) {
        return t.numel() > 0 ? heap_->offset_of(t.data_ptr()) : not_in_arena;
      });
      send_message(socket_, {});
    }
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setDone(); });
  }

  arena_head& head() const {
    if (base_ == nullptr)
      throw program_error(Outcome::INFRASTRUCTURE, "a session without an arena makes no calls");
    return *reinterpret_cast<arena_head*>(base_);
  }

  module_runner runner_;
  int socket_;
  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  module_heap* heap_ = nullptr;
  std::uint64_t row_major_outputs_ = 0;
  std::size_t calls_ = 0;
  std::vector<std::vector<at::Tensor>> outputs_;  // by call
};

}  // namespace

void serve_module_session(const module_hooks& hooks, int socket, int arena,
                          std::uint64_t address_space) {
  try {
    module_session served(hooks, socket, arena);
    confine_module({.address_space = address_space});
    send_reply(socket, [](schema::Reply::Builder reply) { reply.setDone(); });
    while (true) {
      const std::vector<char> bytes = receive_message(socket)->bytes;
      try {
        served.handle(*record<schema::Command>::from_bytes(bytes));
      } catch (const connection_lost&) {
        _exit(0);
      } catch (const std::exception& e) {
        send_failure(socket, e);
      }
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

std::function<void()> trivial_module_call(const module_hooks& hooks) {
  module_runner runner(hooks);
  runner.load("",
              "import torch\n"
              "class ModelNew(torch.nn.Module):\n"
              "    def forward(self, x):\n"
              "        return x\n");
  runner.make(0);
  runner.stage(1, {at::zeros({1})});
  return [runner, head = std::make_shared<arena_head>()] {
    head->output_count = 0;
    describe_call(*head, runner.call(0, 0), [](const at::Tensor&) { return not_in_arena; });
  };
}

}  // namespace hone
