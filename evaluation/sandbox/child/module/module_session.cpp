#include "evaluation/sandbox/child/module/module_session.hpp"

#include <ATen/ATen.h>
#include <ATen/DLConvertor.h>
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
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

// Why the last hook failed.
Outcome failure = Outcome::CRASH;
std::string failure_message;

// The runner's hooks, with exceptions for negative numbers and tensors for pointers.
class module_runner {
 public:
  explicit module_runner(const module_hooks& hooks) : hooks_(&hooks) {}

  void load(const char* task, const char* program, const char* class_name) const {
    require(hooks_->load(task, program, class_name));
  }
  void make(std::uint64_t seed) const { require(hooks_->make(seed)); }
  // Returns a tensor of the instance, or an undefined one if it has none of this name.
  at::Tensor find(const char* name) const {
    DLManagedTensor* found = hooks_->find(name);
    return found != nullptr ? at::fromDLPack(found) : at::Tensor();
  }
  void stage(std::size_t calls, const std::vector<at::Tensor>& inputs) const {
    std::vector<DLManagedTensor*> given;
    given.reserve(inputs.size());
    for (const at::Tensor& input : inputs) given.push_back(at::toDLPack(input));
    require(hooks_->stage(
        static_cast<std::int64_t>(calls),
        static_cast<std::int64_t>(inputs.size() / std::max<std::size_t>(calls, 1)), given.data()));
  }
  std::vector<at::Tensor> call(std::size_t number, std::uint64_t row_major) const {
    std::array<DLManagedTensor*, max_module_outputs> given{};
    const int count = hooks_->call(static_cast<std::int64_t>(number), row_major, given.data());
    require(count);
    std::vector<at::Tensor> outputs;
    outputs.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < std::min(count, max_module_outputs); ++i)
      outputs.push_back(at::fromDLPack(given[static_cast<std::size_t>(i)]));
    return outputs;
  }

 private:
  static void require(int result) {
    if (result < 0) throw program_error(failure, failure_message);
  }
  const module_hooks* hooks_;
};

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
    const auto program = request.getPrograms()[0];
    is_candidate_ = request.getJudgesCandidate();
    for (const auto name : program.getParameterNames()) names_.emplace_back(name.cStr());
    runner_.load(program.getTaskModule().cStr(), program.getSource().cStr(),
                 is_candidate_ ? "ModelNew" : "Model");
    send_reply(socket_, [&](schema::Reply::Builder reply) {
      auto opened = reply.initOpened();
      opened.initLaunches(0);
      content_id<program_id>({view(program.getSource())}).store(opened.initNormalForm());
    });
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
      if (!is_candidate_) show_parameters(request);
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

  // Copies the tensors of the task's module to the places of the task's parameters.
  void show_parameters(schema::StageCalls::Reader request) const {
    for (unsigned i = 0; i < request.getParameters().size(); ++i) {
      const std::string& name = names_.at(i);
      at::Tensor place = tensor(request.getParameters()[i], request.getParameterOffsets()[i]);
      const at::Tensor found = runner_.find(name.c_str());
      if (!found.defined() || found.sizes() != place.sizes())
        throw program_error(
            Outcome::INFRASTRUCTURE,
            "the task's module has no tensor '" + name +
                "' of the shape that the "
                "task says, so a Python module cannot be given the same parameters");
      place.copy_(found);
    }
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
  bool is_candidate_ = true;
  std::vector<std::string> names_;  // of the task's parameters
  std::uint64_t row_major_outputs_ = 0;
  std::size_t calls_ = 0;
  std::vector<std::vector<at::Tensor>> outputs_;  // by call
};

}  // namespace

void serve_module_session(const module_hooks& hooks, int socket, int arena,
                          std::uint64_t address_space) {
  try {
    module_session served(hooks, socket, arena);
    confine_module(address_space);
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
  const module_runner runner(hooks);
  runner.load("",
              "import torch\n"
              "class ModelNew(torch.nn.Module):\n"
              "    def forward(self, x):\n"
              "        return x\n",
              "ModelNew");
  runner.make(0);
  runner.stage(1, {at::zeros({1})});
  return [runner, head = std::make_shared<arena_head>()] {
    head->output_count = 0;
    describe_call(*head, runner.call(0, 0), [](const at::Tensor&) { return not_in_arena; });
  };
}

}  // namespace hone

extern "C" void hone_fail(int outcome, const char* message) {
  hone::failure = static_cast<hone::Outcome>(outcome);
  hone::failure_message = message;
}
