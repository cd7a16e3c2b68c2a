#include "evaluation/sandbox/child/session.hpp"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "evaluation/sandbox/arena.hpp"
#include "evaluation/sandbox/child/arena_allocator.hpp"
#include "evaluation/sandbox/child/confinement.hpp"
#include "evaluation/sandbox/child/kernels.hpp"
#include "evaluation/sandbox/framing.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"

namespace hone {
namespace {

constexpr std::array<at::ScalarType, 7> scalar_types = {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kInt, at::kLong, at::kBool};

std::uint32_t dtype_of(const at::Tensor& tensor) {
  for (std::uint32_t i = 0; i < scalar_types.size(); ++i) {
    if (tensor.scalar_type() == scalar_types[i]) return i;
  }
  return unsupported_dtype;
}

void send_failure(int socket, Outcome outcome, const std::string& message) {
  record_builder<schema::Reply> reply;
  auto failed = reply->initFailed();
  failed.setOutcome(outcome);
  failed.setMessage(message.substr(0, 2000));
  send_message(socket, reply.finish().bytes());
}

// "division by zero" rather than the interpreter's traceback.
std::string tidy(const std::string& what) {
  std::string_view text = what;
  if (const auto at = text.rfind("RuntimeError: "); at != std::string_view::npos) text.remove_prefix(at + 14);
  if (const auto at = text.find("\nException raised from"); at != std::string_view::npos) text = text.substr(0, at);
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string line(text.substr(0, 500));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

class session {
 public:
  session(int socket, int arena) : socket_(socket) {
    if (arena < 0) return;
    struct stat facts {};
    fstat(arena, &facts);
    bytes_ = static_cast<std::uint64_t>(facts.st_size);
    base_ = reinterpret_cast<char*>(map_arena(arena, bytes_));
    allocator_ = new arena_allocator;  // tensors may outlive everything here
    allocator_->attach(base_, bytes_);
    c10::SetCPUAllocator(allocator_, 100);
    close(arena);
  }

  std::uint32_t* refused_call() const { return base_ != nullptr ? &allocator_->head().refused_call : nullptr; }

  void handle(schema::Command::Reader command) {
    switch (command.which()) {
      case schema::Command::OPEN: open(command.getOpen()); break;
      case schema::Command::STAGE: stage(command.getStage()); break;
      case schema::Command::GO: go(); break;
      default: throw host_program_error(Outcome::INFRASTRUCTURE, "a session does not know this command");
    }
  }

 private:
  void open(schema::Open::Reader request) {
    for (const auto program : request.getPrograms()) {
      programs_.emplace_back(program.getSource().cStr(), program.getInputs(), program.getParameters());
      prepared_.emplace_back();
    }
    if (request.getHasObject()) kernels_.emplace(artifact_path());
    close_door();
    if (kernels_) {
      host_program::set_launcher(&*kernels_);
    } else if (request.getJudgesCandidate()) {
      host_program::set_launcher(&nothing_);
    }
    record_builder<schema::Reply> reply;
    auto opened = reply->initOpened();
    opened.setHasPrepare(programs_.front().has_prepare());
    const auto& launches = programs_.front().launches();
    auto list = opened.initLaunches(static_cast<unsigned>(launches.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, launches[i]);
    send_message(socket_, reply.finish().bytes());
  }

  at::Tensor tensor_at(schema::Layout::Reader layout, std::uint64_t offset) const {
    std::vector<std::int64_t> shape;
    for (const std::int64_t extent : layout.getShape()) shape.push_back(extent);
    const auto options = at::TensorOptions(scalar_types.at(layout.getDtype()));
    std::uint64_t bytes = options.dtype().itemsize();
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    if (base_ == nullptr || offset > bytes_ || bytes > bytes_ - offset) throw host_program_error(Outcome::INFRASTRUCTURE, "a tensor lies outside the arena");
    return at::from_blob(base_ + offset, shape, options);
  }

  void stage(schema::StageCalls::Reader request) {
    outputs_.clear();
    stacks_.clear();
    program_ = request.getProgram();
    allocator_->head().output_count = 0;
    if (kernels_) kernels_->poison_shared();
    auto& prepared = prepared_.at(program_);
    if (!prepared || request.getParametersChanged()) {
      std::vector<at::Tensor> parameters;
      for (unsigned i = 0; i < request.getParameters().size(); ++i) parameters.push_back(tensor_at(request.getParameters()[i], request.getParameterOffsets()[i]));
      // What prepare makes outlives this stage's scratch memory, so it goes to the heap.
      allocator_->reset(0, 0, 0);
      prepared = programs_[program_].prepare(parameters);
    }
    allocator_->reset(request.getScratchBegin(), request.getPoisonedEnd(), request.getScratchEnd());
    for (const auto call : request.getCalls()) {
      std::vector<c10::IValue> stack;
      stack.reserve(request.getInputs().size() + prepared->size());
      for (unsigned i = 0; i < request.getInputs().size(); ++i) stack.emplace_back(tensor_at(request.getInputs()[i], call.getInputOffsets()[i]));
      stack.insert(stack.end(), prepared->begin(), prepared->end());
      stacks_.push_back(std::move(stack));
    }
    outputs_.reserve(stacks_.size());
    reply([](schema::Reply::Builder r) { r.setStaged(); });
  }

  void go() {
    host_program& program = programs_.at(program_);
    for (auto& stack : stacks_) outputs_.push_back(program.forward(stack));
    if (kernels_ && kernels_->shared_overrun()) throw host_program_error(Outcome::CRASH, "a kernel wrote behind the dynamic shared memory that it asked for");
    describe_outputs();
    send_message(socket_, done_);
  }

  void describe_outputs() {
    arena_head& head = allocator_->head();
    head.outputs_per_call = outputs_.empty() ? 0 : static_cast<std::uint32_t>(outputs_.front().size());
    std::uint32_t count = 0;
    for (auto& call : outputs_) {
      for (at::Tensor& tensor : call) {
        if (count == max_arena_outputs) break;
        if (tensor.is_conj() || tensor.is_neg()) tensor = tensor.resolve_conj().resolve_neg();
        arena_output& out = head.outputs[count++];
        const bool fits = tensor.layout() == at::kStrided && tensor.dim() <= static_cast<std::int64_t>(out.sizes.size());
        out.dtype = fits ? dtype_of(tensor) : unsupported_dtype;
        out.dimensions = fits ? static_cast<std::uint32_t>(tensor.dim()) : 0;
        out.offset = fits && allocator_->contains(tensor.data_ptr()) ? allocator_->offset_of(tensor.data_ptr()) : not_in_arena;
        for (std::uint32_t d = 0; d < out.dimensions; ++d) {
          out.sizes[d] = tensor.size(d);
          out.strides[d] = tensor.stride(d);
        }
      }
    }
    head.output_count = count;
  }

  template <class Fill>
  void reply(Fill fill) const {
    record_builder<schema::Reply> message;
    fill(message.root());
    send_message(socket_, message.finish().bytes());
  }

  static std::vector<char> done_message() {
    record_builder<schema::Reply> message;
    message->setDone();
    return message.finish().bytes();
  }

  struct no_kernels final : kernel_launcher {
    void launch(const std::string& kernel, const std::vector<std::int64_t>&, const std::vector<std::int64_t>&, std::int64_t, const std::vector<c10::IValue>&) override {
      throw host_program_error(Outcome::LAUNCH_ERROR, "there is no cuda block, so no __global__ function '" + kernel + "'");
    }
  };

  int socket_;
  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  arena_allocator* allocator_ = nullptr;
  no_kernels nothing_;
  std::optional<cpu_kernels> kernels_;
  std::vector<host_program> programs_;
  std::vector<std::optional<std::vector<c10::IValue>>> prepared_;
  std::uint32_t program_ = 0;
  std::vector<std::vector<c10::IValue>> stacks_;
  std::vector<std::vector<at::Tensor>> outputs_;
  std::vector<char> done_ = done_message();  // ready before the clock starts
};

// The failure that an exception out of a candidate's program means.
std::pair<Outcome, std::string> describe_failure(const std::exception& e) {
  if (const auto* known = dynamic_cast<const host_program_error*>(&e)) return {known->outcome, known->what()};
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return {Outcome::CRASH, "out of memory"};
  const std::string what = tidy(e.what());
  return {Outcome::CRASH, what.find("std::bad_alloc") != std::string::npos ? "out of memory" : what};
}

}  // namespace

void serve_session(int socket, int arena, std::uint64_t private_bytes) {
  try {
    const c10::InferenceMode no_gradients;
    session served(socket, arena);
    // The object comes with the first command, so it is received before the filter that allows its descriptor alone.
    received_message first = receive_with_descriptors(socket);
    const int object = first.descriptors.empty() ? -1 : first.descriptors.front().release();
    confine(socket, object, private_bytes, served.refused_call());
    std::vector<char> bytes = std::move(first.bytes);
    while (true) {
      try {
        served.handle(*record<schema::Command>::from_bytes(std::move(bytes)));
      } catch (const connection_lost&) {
        _exit(0);
      } catch (const std::exception& e) {
        const auto [outcome, message] = describe_failure(e);
        send_failure(socket, outcome, message);
      }
      bytes = receive_message(socket)->bytes;
    }
  } catch (const connection_lost&) {
    _exit(0);
  } catch (const std::exception& e) {
    try {
      send_failure(socket, Outcome::INFRASTRUCTURE, e.what());
    } catch (const std::exception&) {
    }
    _exit(1);
  }
}

}  // namespace hone
