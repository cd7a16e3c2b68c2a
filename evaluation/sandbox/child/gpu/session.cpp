#include "evaluation/sandbox/child/gpu/session.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "evaluation/sandbox/child/common/flop_count.hpp"
#include "evaluation/sandbox/child/common/replies.hpp"
#include "process/framing.hpp"
#include "evaluation/sandbox/child/gpu/activity_trace.hpp"
#include "evaluation/sandbox/child/gpu/allocator.hpp"
#include "evaluation/sandbox/child/gpu/cache_flush.hpp"
#include "evaluation/sandbox/child/gpu/captured_call.hpp"
#include "evaluation/sandbox/child/gpu/confinement.hpp"
#include "evaluation/sandbox/child/gpu/judge_tools.hpp"
#include "evaluation/sandbox/child/gpu/kernels.hpp"
#include "evaluation/sandbox/child/gpu/program_thread.hpp"
#include "evaluation/sandbox/child/gpu/streams.hpp"
#include "evaluation/sandbox/child/gpu/timing_event.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::uint64_t least_cache_bytes = 256U << 10U;

double ns_since(steady::time_point begin) {
  return std::chrono::duration<double, std::nano>(steady::now() - begin).count();
}

call_streams& the_streams() {
  static call_streams streams;
  return streams;
}

std::string read_file(int descriptor) {
  struct stat facts {};
  fstat(descriptor, &facts);
  std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
  if (pread(descriptor, bytes.data(), bytes.size(), 0) != facts.st_size)
    throw program_error(Outcome::INFRASTRUCTURE, "the artifact cannot be read");
  return bytes;
}

class session {
 public:
  explicit session(int socket)
      : socket_(socket),
        driver_(&cuda_driver::get()),
        memory_(&gpu_allocator::instance()),
        streams_(&the_streams()) {}

  void attach(schema::Attach::Reader request, const std::vector<unique_fd>& descriptors) {
    void* head = mmap(nullptr, arena_head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      descriptors.at(0).get(), 0);
    if (head == MAP_FAILED)
      throw program_error(Outcome::INFRASTRUCTURE, "the arena's head cannot be mapped");
    CUipcMemHandle handle{};
    if (request.getHandle().size() != sizeof handle)
      throw program_error(Outcome::INFRASTRUCTURE, "the arena's handle is damaged");
    std::memcpy(&handle, request.getHandle().begin(), sizeof handle);
    CUdeviceptr base = 0;
    driver_->check(driver_->cuIpcOpenMemHandle(&base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                   "mapping the arena");
    memory_->attach(reinterpret_cast<char*>(base), request.getBytes(),
                    *static_cast<arena_head*>(head));

    tools_.load(*driver_, request);
    // Nothing may stay in the L2 cache because somebody wants it to.
    driver_->cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
    // CUPTI stays in a process from its first use on. Here, before anything is timed, all processes
    // get it alike.
    trace_.start();
    trace_.begin();
    trace_.stop();
  }

  void handle(schema::Command::Reader command, const std::vector<unique_fd>& descriptors) {
    switch (command.which()) {
      case schema::Command::OPEN:
        open(command.getOpen(), descriptors);
        break;
      case schema::Command::STAGE:
        stage(command.getStage());
        break;
      case schema::Command::GO:
        go();
        break;
      case schema::Command::TIME:
        time(command.getTime());
        break;
      case schema::Command::BURST:
        burst(command.getBurst());
        break;
      default:
        throw program_error(Outcome::INFRASTRUCTURE,
                                 "a GPU's session does not know this command");
    }
  }

  // Before the next `open`: nothing of the programs is left.
  void close() {
    forget_calls();
    prepared_.clear();
    programs_.clear();
    torchscript_program::set_launcher(nullptr);
    kernels_.reset();
  }

 private:
  void open(schema::Open::Reader request, const std::vector<unique_fd>& descriptors) {
    uses_graph_ = request.getCudaGraph();
    at::globalContext().setAllowTF32CuBLAS(request.getTf32());
    at::globalContext().setAllowTF32CuDNN(request.getTf32());
    at::globalContext().setBenchmarkCuDNN(request.getCudnnBenchmark());
    for (const auto program : request.getPrograms()) {
      programs_.emplace_back(program.getSource().cStr(), program.getInputs(),
                             program.getParameters());
      prepared_.emplace_back();
    }
    if (request.getJudgesCandidate()) {
      kernels_.emplace(*driver_, request.getHasObject() ? read_file(descriptors.at(0).get()) : "",
                       request.getKernels(), *streams_, *memory_);
      torchscript_program::set_launcher(&*kernels_);
    }
    send_opened(socket_, programs_.front());
  }

  at::Tensor tensor(schema::Layout::Reader layout, std::uint64_t offset) const {
    if (offset > memory_->bytes())
      throw program_error(Outcome::INFRASTRUCTURE, "a tensor lies outside the arena");
    return tensor_at(memory_->base() + offset, memory_->bytes() - offset, layout, true);
  }

  void forget_calls() {
    graphs_.clear();
    outputs_.clear();
    stacks_.clear();
  }

  // Parameters that changed are prepared at once, with memory from the same region: the parent puts
  // the calls' behind it.
  void stage(schema::StageCalls::Reader request) {
    forget_calls();
    program_ = request.getProgram();
    memory_->head().output_count = 0;
    if (request.getParametersChanged()) prepared_.at(program_).reset();
    memory_->ledger().reset(request.getScratchBegin(), request.getScratchEnd());
    auto& prepared = prepared_.at(program_);
    if (!prepared) {
      std::vector<at::Tensor> parameters;
      for (unsigned i = 0; i < request.getParameters().size(); ++i)
        parameters.push_back(tensor(request.getParameters()[i], request.getParameterOffsets()[i]));
      tools_.spoil_shared_memory(streams_->main());
      streams_->begin();
      prepared = programs_[program_].prepare(parameters);
      finish();
    }
    inputs_.clear();
    for (const auto call : request.getCalls()) {
      std::vector<c10::IValue> stack;
      inputs_.emplace_back();
      stack.reserve(request.getInputs().size() + prepared->size());
      for (unsigned i = 0; i < request.getInputs().size(); ++i) {
        const at::Tensor input = tensor(request.getInputs()[i], call.getInputOffsets()[i]);
        inputs_.back().emplace_back(reinterpret_cast<CUdeviceptr>(input.data_ptr()),
                                    input.nbytes());
        stack.emplace_back(input);
      }
      stack.insert(stack.end(), prepared->begin(), prepared->end());
      stacks_.push_back(std::move(stack));
    }
    calls_begin_ = memory_->ledger().end_of_used();
    calls_end_ = request.getScratchEnd();
    if (uses_graph_) {
      for (const auto& stack : stacks_) graphs_.push_back(capture(stack));
    }
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setStaged(); });
  }

  captured_call capture(std::vector<c10::IValue> stack) {
    streams_->begin();
    C10_CUDA_CHECK(cudaStreamBeginCapture(streams_->main(), cudaStreamCaptureModeThreadLocal));
    std::vector<at::Tensor> outputs;
    cudaGraph_t graph = nullptr;
    try {
      outputs = programs_[program_].forward(stack);
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
    captured.upload(streams_->main());  // or the first replay does it
    return captured;
  }

  // Puts a call on the main stream, side streams joined to its end.
  std::vector<at::Tensor> call(std::size_t index) {
    if (uses_graph_) {
      graphs_.at(index).replay(streams_->main());
      return graphs_[index].outputs();
    }
    std::vector<c10::IValue> arguments = stacks_.at(index);
    streams_->begin();
    auto outputs = programs_[program_].forward(arguments);
    streams_->end();
    return outputs;
  }

  // Whatever may still run, on any stream, has run; an error of a kernel shows here.
  static void finish() {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    C10_CUDA_CHECK(cudaGetLastError());
  }

  void make_readable(std::size_t index, const capnp::List<std::uint64_t>::Reader& keys) {
    for (unsigned i = 0; i < inputs_.at(index).size(); ++i)
      tools_.make_readable(inputs_[index][i].first, inputs_[index][i].second, keys[i],
                           streams_->main());
  }

  void reply_done() {
    describe_outputs(memory_->head(), outputs_, [this](const at::Tensor& t) {
      return t.is_cuda() && memory_->contains(t.data_ptr()) ? memory_->offset_of(t.data_ptr())
                                                            : not_in_arena;
    });
    finish();
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setDone(); });
  }

  void go() {
    outputs_.clear();
    const auto run = [this] {
      for (std::size_t i = 0; i < stacks_.size(); ++i) {
        tools_.spoil_shared_memory(streams_->main());
        outputs_.push_back(call(i));
      }
    };
    if (kernels_) {
      run();
    } else {
      memory_->head().flops = count_flops(run);
    }
    finish();
    reply_done();
  }

  void time(schema::TimeCalls::Reader request) {
    outputs_.clear();
    flush_.make_room(request.getCacheBytes());
    driver_->cuCtxResetPersistingL2Cache();
    timing_event begin;
    timing_event end;
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      make_readable(i, request.getKeys()[static_cast<unsigned>(i)]);
      tools_.spoil_shared_memory(streams_->main());
      flush_.settle(streams_->main());
      // All that is slower after some calls than after others, and at first because another process
      // has had the GPU, is not for the host's clock to see.
      C10_CUDA_CHECK(cudaStreamSynchronize(streams_->main()));
      const auto beginning = steady::now();
      flush_.run(streams_->main(), request.getFlushes());
      const auto launching = steady::now();
      begin.record(streams_->main());
      outputs_.push_back(call(i));
      end.record(streams_->main());
      const double launch_ns = ns_since(launching);
      C10_CUDA_CHECK(cudaStreamSynchronize(streams_->main()));
      const double host_ns = ns_since(beginning);
      memory_->head().call_clocks[i % max_calls] = {end.ns_since(begin), host_ns, launch_ns,
                                                    flush_.each_ns(begin)};
    }
    reply_done();
  }

  void burst(schema::BurstOfCalls::Reader request) {
    outputs_.clear();
    const bool traced = request.getTraced() && trace_.works();
    if (traced) trace_.start();
    const auto call_in_the_same_place = [this](std::size_t index) {
      if (!uses_graph_) memory_->ledger().reset(calls_begin_, calls_end_);
      return call(index);
    };
    for (int i = 0; i < 2; ++i)
      call_in_the_same_place(
          0);  // another process has had the GPU: the first work of this one waits for it
    finish();
    timing_event begin;
    timing_event end;
    if (traced) {
      trace_.begin();
      // While the device writes this the host gets ahead of it: under CUPTI it launches so slowly
      // that the device would wait for the first call.
      flush_.make_room(least_cache_bytes);
      flush_.run(streams_->main(), 1);
    }
    const auto wall = steady::now();
    begin.record(streams_->main());
    for (std::uint32_t r = 0; r < request.getRepeats(); ++r) {
      for (std::size_t i = 0; i < stacks_.size(); ++i) {
        auto made = call_in_the_same_place(i);
        if (r + 1 == request.getRepeats() && i + 1 == stacks_.size())
          outputs_.push_back(std::move(made));
      }
    }
    end.record(streams_->main());
    C10_CUDA_CHECK(cudaStreamSynchronize(streams_->main()));
    const double wall_ns = ns_since(wall);
    finish();
    const activity_trace::result seen = traced ? trace_.stop() : activity_trace::result{};
    memory_->head().allocation_count =
        0;  // calls lay on top of each other: there are no guards between them
    memory_->head().launch_count = 0;
    if (kernels_) kernels_->describe_launches(memory_->head());
    memory_->head().burst = {end.ns_since(begin), wall_ns, seen.span_ns, seen.busy_ns,
                             std::uint64_t{request.getRepeats()} * stacks_.size()};
    reply_done();
  }

  int socket_;
  const cuda_driver* driver_;
  gpu_allocator* memory_;
  call_streams* streams_;
  activity_trace trace_;
  judge_tools tools_;
  cache_flush flush_;
  bool uses_graph_ = false;
  std::optional<gpu_kernels> kernels_;  // a candidate's; references have none
  std::vector<torchscript_program> programs_;
  std::vector<std::optional<std::vector<c10::IValue>>> prepared_;
  std::uint32_t program_ = 0;
  std::uint64_t calls_begin_ = 0;
  std::uint64_t calls_end_ = 0;
  std::vector<std::vector<c10::IValue>> stacks_;
  std::vector<std::vector<std::pair<CUdeviceptr, std::uint64_t>>>
      inputs_;  // of each staged call: where, how many bytes
  std::vector<captured_call> graphs_;
  std::vector<std::vector<at::Tensor>> outputs_;
};

// A context that has met an error of a kernel answers every call with it.
std::optional<std::string> lost_context() {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) return std::nullopt;
  return std::string("a kernel failed: ") + cudaGetErrorString(status);
}

// Everything that the first call of a kind would load or reserve, with memory that is CUDA's own:
// the arena comes later.
void warm_up() {
  gpu_allocator::instance();
  torchscript_program::judge_on_gpu();
  at::globalContext().lazyInitDevice(c10::kCUDA);
  torchscript_program::warm_up();
  // The libraries keep a workspace for each stream: they take it now, from CUDA itself.
  call_streams& streams = the_streams();
  for (const auto& stream : streams.all()) {
    c10::cuda::setCurrentCUDAStream(stream);
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
      const at::Tensor a = at::ones({64, 64}, at::TensorOptions(type).device(c10::kCUDA));
      at::addmm(at::ones({64}, a.options()), a, a);
      at::matmul(a, a);
    }
  }
  c10::cuda::setCurrentCUDAStream(streams.all().front());
  C10_CUDA_CHECK(cudaDeviceSynchronize());
}

struct command {
  record<schema::Command> what;
  std::vector<unique_fd> descriptors;
};

command receive_command(int socket) {
  received_message message = receive_with_descriptors(socket);
  return {record<schema::Command>::from_bytes(std::move(message.bytes)),
          std::move(message.descriptors)};
}

// From one `open` to the next, which is returned.
command serve_program(session& one, int socket, command first) {
  command next = std::move(first);
  do {
    try {
      one.handle(*next.what, next.descriptors);
    } catch (const connection_lost&) {
      throw;
    } catch (const std::exception& e) {
      if (const auto lost = lost_context()) {
        send_failure(socket, program_error(Outcome::CRASH, *lost), true);
        _exit(1);  // nothing of CUDA's can be tidied up any more
      }
      cudaGetLastError();  // what this program was refused is not the next one's error
      send_failure(socket, e);
    }
    next = receive_command(socket);
  } while (!next.what->isOpen());
  one.close();
  return next;
}

}  // namespace

void serve_gpu_sessions(int socket) {
  std::optional<session> one;
  on_a_thread([&] {
    warm_up();
    one.emplace(socket);
    const command attach = receive_command(socket);
    if (!attach.what->isAttach()) throw std::runtime_error("the first command must be attach");
    one->attach(attach.what->getAttach(), attach.descriptors);
  });
  confine_gpu_process();
  send_reply(socket, [](schema::Reply::Builder reply) { reply.setStaged(); });
  command next = receive_command(socket);
  while (true) on_a_thread([&] { next = serve_program(*one, socket, std::move(next)); });
}

}  // namespace hone
