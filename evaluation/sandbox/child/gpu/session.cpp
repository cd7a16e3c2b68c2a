#include "evaluation/sandbox/child/gpu/session.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/detail/CUDAHooksInterface.h>
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
#include "evaluation/sandbox/child/gpu/activity_trace.hpp"
#include "evaluation/sandbox/child/gpu/allocator.hpp"
#include "evaluation/sandbox/child/gpu/cache_flush.hpp"
#include "evaluation/sandbox/child/gpu/confinement.hpp"
#include "evaluation/sandbox/child/gpu/context_limits.hpp"
#include "evaluation/sandbox/child/gpu/judge_tools.hpp"
#include "evaluation/sandbox/child/gpu/kernels.hpp"
#include "evaluation/sandbox/child/gpu/program_thread.hpp"
#include "evaluation/sandbox/child/gpu/staged_calls.hpp"
#include "evaluation/sandbox/child/gpu/streams.hpp"
#include "evaluation/sandbox/child/gpu/timing_event.hpp"
#include "messages/record.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

// Cache size for the flush before a traced burst if no call has been timed yet.
constexpr std::uint64_t min_cache_bytes = 256U << 10U;

// Algorithms among which cuDNN's autotuning chooses: PyTorch's default for candidates. The first
// call of a network with a hundred convolutions takes half a minute with it, so a reference, whose
// autotuned time is only a baseline, has fewer, and a reference of many convolutions fewer still.
constexpr int candidate_algorithms = 10;
constexpr int baseline_algorithms = 4;
constexpr std::size_t many_convolutions = 64;
constexpr int baseline_algorithms_of_many = 2;

int algorithms_of_baseline(const torchscript_program& reference) {
  return reference.convolutions() > many_convolutions ? baseline_algorithms_of_many
                                                      : baseline_algorithms;
}

double ns_since(steady::time_point begin) {
  return std::chrono::duration<double, std::nano>(steady::now() - begin).count();
}

call_streams& the_streams() {
  static call_streams streams;
  return streams;
}

// LibTorch keeps plans of Fourier transforms, up to thousands, in the GPU's memory outside of the
// arena. A program may have a few, and none outlives it.
constexpr std::int64_t max_fft_plans = 16;
void limit_fft_plans() { at::detail::getCUDAHooks().cuFFTSetPlanCacheMaxSize(0, max_fft_plans); }
void forget_fft_plans() { at::detail::getCUDAHooks().cuFFTClearPlanCache(0); }

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
        streams_(&the_streams()),
        calls_(*streams_, *memory_, tools_) {}

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

    limit_context(*driver_);
    tools_.load(*driver_, request);
    // No program may make data persist in the L2 cache.
    driver_->cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
    // CUPTI stays in a process from its first use on. It is used here, before anything is timed, so
    // that all processes have it alike.
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
      case schema::Command::STUDY:
        study(command.getStudy());
        break;
      default:
        throw program_error(Outcome::INFRASTRUCTURE,
                            "a GPU's session does not support this command");
    }
  }

  // Drops the programs and all that they have left. Must be called before the next `open`.
  void close() {
    outputs_.clear();
    calls_.close();
    torchscript_program::set_launcher(nullptr);
    kernels_.reset();
    forget_fft_plans();
    return_local_memory(*driver_);
  }

 private:
  void open(schema::Open::Reader request, const std::vector<unique_fd>& descriptors) {
    at::globalContext().setAllowTF32CuBLAS(request.getTf32());
    at::globalContext().setAllowTF32CuDNN(request.getTf32() || request.getCudnnTf32());
    calls_.open(request);
    at::globalContext().setBenchmarkCuDNN(request.getCudnnBenchmark() &&
                                          calls_.first_program().convolutions() > 0);
    at::globalContext().setBenchmarkLimitCuDNN(
        request.getJudgesCandidate() ? candidate_algorithms
                                     : algorithms_of_baseline(calls_.first_program()));
    if (request.getJudgesCandidate()) {
      kernels_.emplace(*driver_, request.getHasObject() ? read_file(descriptors.at(0).get()) : "",
                       request.getKernels(), *streams_, *memory_);
      torchscript_program::set_launcher(&*kernels_);
    }
    send_opened(socket_, calls_.first_program());
  }

  void stage(schema::StageCalls::Reader request) {
    outputs_.clear();
    calls_.stage(request);
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setStaged(); });
  }

  void reply_done() {
    describe_outputs(memory_->head(), outputs_, [this](const at::Tensor& t) {
      return t.is_cuda() && memory_->contains(t.data_ptr()) ? memory_->offset_of(t.data_ptr())
                                                            : not_in_arena;
    });
    await_device();
    send_reply(socket_, [](schema::Reply::Builder reply) { reply.setDone(); });
  }

  void go() {
    outputs_.clear();
    const auto run = [this] {
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        tools_.spoil_shared_memory(streams_->main());
        outputs_.push_back(calls_.call(i));
      }
    };
    if (kernels_) {
      run();
    } else {
      memory_->head().flops = count_flops(run);
    }
    await_device();
    reply_done();
  }

  void study(schema::StudyCalls::Reader request) {
    outputs_.clear();
    if (kernels_) throw program_error(Outcome::INFRASTRUCTURE, "a candidate cannot be studied");
    memory_->head().decisions = calls_.study(request, outputs_);
    await_device();
    reply_done();
  }

  void time(schema::TimeCalls::Reader request) {
    outputs_.clear();
    flush_.make_room(request.getCacheBytes());
    driver_->cuCtxResetPersistingL2Cache();
    timing_event begin;
    timing_event end;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      calls_.make_readable(i, request.getKeys()[static_cast<unsigned>(i)]);
      tools_.spoil_shared_memory(streams_->main());
      flush_.settle(streams_->main());
      // Some work is slower after some calls than after others, and the first work is slower
      // because another process has used the GPU. The host's clock must not see either.
      C10_CUDA_CHECK(cudaStreamSynchronize(streams_->main()));
      const auto beginning = steady::now();
      flush_.run(streams_->main(), request.getFlushes());
      const auto launching = steady::now();
      begin.record(streams_->main());
      outputs_.push_back(calls_.call(i));
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
    // Another process has used the GPU, and this process's first work waits for that process.
    flush_.make_room(min_cache_bytes);
    flush_.run(streams_->main(), 1);
    for (std::uint32_t i = 0; i < request.getWarmUps(); ++i) calls_.call_in_same_place(0);
    await_device();
    timing_event begin;
    timing_event end;
    if (traced) {
      trace_.begin();
      // While the device writes this buffer, the host gets ahead of it. Under CUPTI the host
      // launches so slowly that the device would wait for the first call.
      flush_.run(streams_->main(), 1);
    }
    const auto wall = steady::now();
    begin.record(streams_->main());
    for (std::uint32_t r = 0; r < request.getRepeats(); ++r) {
      for (std::size_t i = 0; i < calls_.size(); ++i) {
        auto made = calls_.call_in_same_place(i);
        if (r + 1 == request.getRepeats() && i + 1 == calls_.size())
          outputs_.push_back(std::move(made));
      }
    }
    end.record(streams_->main());
    C10_CUDA_CHECK(cudaStreamSynchronize(streams_->main()));
    const double wall_ns = ns_since(wall);
    await_device();
    const activity_trace::result seen = traced ? trace_.stop() : activity_trace::result{};
    // The calls have used the same memory, so there are no guards between them.
    memory_->head().allocation_count = 0;
    calls_.forget_request();
    memory_->head().launch_count = 0;
    if (kernels_) kernels_->describe_launches(memory_->head());
    memory_->head().burst = {end.ns_since(begin), wall_ns, seen.span_ns, seen.busy_ns,
                             std::uint64_t{request.getRepeats()} * calls_.size()};
    reply_done();
  }

  int socket_;
  const cuda_driver* driver_;
  gpu_allocator* memory_;
  call_streams* streams_;
  activity_trace trace_;
  judge_tools tools_;
  cache_flush flush_;
  std::optional<gpu_kernels> kernels_;  // a candidate's; references have none
  staged_calls calls_;
  std::vector<std::vector<at::Tensor>> outputs_;  // of the last run, by call
};

// Returns the error if the GPU's context is lost: after an error of a kernel, the context answers
// every call with that error.
std::optional<std::string> lost_context() {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) return std::nullopt;
  return std::string("a kernel failed: ") + cudaGetErrorString(status);
}

// Loads and reserves everything that the first call of a kind would. The memory comes from CUDA
// itself, because the arena is attached later.
void warm_up() {
  gpu_allocator::instance();
  torchscript_program::judge_on_gpu();
  at::globalContext().lazyInitDevice(c10::kCUDA);
  limit_fft_plans();
  torchscript_program::warm_up();
  // The libraries keep a workspace for each stream, whatever the type of the numbers. They allocate
  // it now, from CUDA itself.
  call_streams& streams = the_streams();
  for (const auto& stream : streams.all()) {
    c10::cuda::setCurrentCUDAStream(stream);
    const at::Tensor a = at::ones({64, 64}, at::TensorOptions(at::kFloat).device(c10::kCUDA));
    at::addmm(at::ones({64}, a.options()), a, a);
    at::matmul(a, a);
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

// Serves the commands of one session, from `first`, an `open`, to the next `open`, which is
// returned.
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
        _exit(1);  // CUDA can release nothing any more
      }
      cudaGetLastError();  // an error of this program must not reach the next one
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
