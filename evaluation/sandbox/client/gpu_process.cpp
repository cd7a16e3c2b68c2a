#include "evaluation/sandbox/client/gpu_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <system_error>

#include "evaluation/sandbox/client/answers.hpp"
#include "evaluation/sandbox/programs.hpp"
#include "process/framing.hpp"
#include "process/memory_file.hpp"
#include "process/throw_errno.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

// When a process ends, the driver first stops the kernels that still run.
constexpr auto end_limit = std::chrono::seconds(30);
// Time for which a late reply is awaited before the process is killed. The driver reports an error
// that affects all multiprocessors seconds late, and a call that is merely slow need not cost the
// process.
constexpr auto report_limit = std::chrono::seconds(4);
// Size of the driver's cache of kernels for cuDNN: without a cache it compiles one kernel for each
// convolution that may use it, and autotuning a network takes 20 s instead of 2 s.
constexpr std::uint64_t max_compiled_bytes = 256U << 20U;

// How often the judge looks for a failure while it spins.
constexpr auto look_every = std::chrono::microseconds(500);

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Returns false if the folder cannot be made, or has no name.
bool make_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  return !folder.empty() && !problem;
}

}  // namespace

shared_head::shared_head() : file_(memfd_create("hone-arena-head", MFD_CLOEXEC)) {
  if (!file_ || ftruncate(file_.get(), arena_head_bytes) != 0)
    throw_errno("cannot make an arena's head");
  void* mapped =
      mmap(nullptr, arena_head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) throw_errno("cannot map an arena's head");
  head_ = static_cast<arena_head*>(mapped);
}

shared_head::~shared_head() { munmap(head_, arena_head_bytes); }

gpu_process::gpu_process(const std::string& visible, const std::filesystem::path& driver_cache)
    : serial_(next_serial()) {
  const std::string compiled =
      make_folder(driver_cache) ? driver_cache.string() : own_cache_.emplace("cuda-cache").path();
  child_options options;
  options.arguments = {companion_program("hone-gpu-sandbox", "HONE_GPU_SANDBOX")};
  options.environment = {"CUDA_CACHE_PATH=" + compiled,
                         "CUDA_CACHE_MAXSIZE=" + std::to_string(max_compiled_bytes)};
  start(std::move(options), visible);
}

gpu_process::gpu_process(const module_interpreter& python, const std::string& visible)
    : serial_(next_serial()), runs_module_(true) {
  child_options options = python.options();
  options.environment = {"CUDA_CACHE_DISABLE=1", "HOME=/", "USER=hone"};
  start(std::move(options), visible);
}

void gpu_process::start(child_options options, const std::string& visible) {
  auto [ours, theirs] = socket_pair();
  socket_ = std::move(ours);
  options.ignores_stop_signals = true;
  for (const char* one :
       {"OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "LC_ALL=C", "TORCH_CPP_LOG_LEVEL=ERROR"})
    options.environment.emplace_back(one);
  options.environment.push_back("CUDA_VISIBLE_DEVICES=" + visible);
  inherit(options.environment, {"LD_LIBRARY_PATH", "CUDA_DEVICE_ORDER"});
  const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const int errors = runs_module_ ? STDERR_FILENO : null.get();  // Python's, if it does not start
  options.descriptors = {{null.get(), 0}, {null.get(), 1}, {errors, 2}, {theirs.get(), 3}};
  process_ = child_process(options);
}

std::string gpu_process::name() const {
  return runs_module_ ? "the process for Python modules" : "hone-gpu-sandbox";
}

void gpu_process::attach(const gpu_attachment& attachment) {
  core_ = attachment.core;
  record_builder<schema::Command> command;
  auto attach = command->initAttach();
  attach.setHandle(as_data(attachment.handle));
  attach.setBytes(attachment.bytes);
  attach.setTools(as_data(attachment.tools));
  attach.setSpoilSymbol(attachment.spoil_symbol);
  attach.setScrambleSymbol(attachment.scramble_symbol);
  attach.setBegins(as_data(attachment.begins));
  const int head = attachment.head;
  if (!send_message_by(clock::now() + start_limit, socket_.get(), command.finish().bytes(),
                       {&head, 1}))
    throw std::runtime_error(name() + " did not take its resources within two minutes");
}

bool gpu_process::alive() { return ready_ && process_.running() && !process_.wait(clock::now()); }

void gpu_process::await_ready() {
  if (ready_) return;
  try {
    auto message = receive_message(socket_.get(), clock::now() + start_limit);
    if (!message) throw std::runtime_error(name() + " did not start within two minutes");
    const auto reply = record<schema::Reply>::from_bytes(std::move(message->bytes));
    if (reply->isFailed())
      throw std::runtime_error(
          name() + " does not start: " + std::string(view(reply->getFailed().getMessage())));
  } catch (const connection_lost&) {
    const auto status = process_.wait(clock::now() + end_limit);
    throw std::runtime_error(
        name() + " does not start: " + (status ? describe_status(*status) : "no answer"));
  }
  // The process is pinned only now: processes that start at the same time use all cores.
  cpu_set_t core;
  CPU_ZERO(&core);
  if (core_ >= 0) {
    CPU_SET(core_, &core);
    sched_setaffinity(process_.pid(), sizeof core, &core);
  }
  ready_ = true;
}

program_failure gpu_process::end(bool timed_out) {
  if (timed_out) {
    process_.kill();
    socket_.reset();
    return {Outcome::TIMEOUT, "", "did not finish within its deadline"};
  }
  const auto status = process_.wait(clock::now() + end_limit);
  process_.kill();
  socket_.reset();
  return {Outcome::CRASH, "",
          "the process ended: " + (status ? describe_status(*status) : "it had to be killed")};
}

program_result<void> gpu_process::send(const std::vector<char>& bytes,
                                       std::span<const int> descriptors, time_point deadline) {
  if (!process_.running() || !ready_)
    return failed(Outcome::INFRASTRUCTURE, "the session has ended");
  try {
    if (!send_message_by(deadline, socket_.get(), bytes, descriptors)) return failed(end(true));
    return {};
  } catch (const connection_lost&) {
    return failed(end(false));
  }
}

program_result<gpu_process::answer> gpu_process::receive(time_point deadline) {
  try {
    auto message = receive_message(socket_.get(), deadline);
    const bool is_late = !message;
    if (is_late) message = receive_message(socket_.get(), clock::now() + report_limit);
    if (!message) return failed(end(true));
    return answer{std::move(message->bytes), is_late};
  } catch (const connection_lost&) {
    return failed(end(false));
  }
}

program_result<record<schema::Reply>> gpu_process::read_reply(answer given) {
  try {
    auto reply = record<schema::Reply>::from_bytes(std::move(given.bytes));
    const bool is_lost = reply->isFailed() && reply->getFailed().getIsLast();
    if (given.is_late && !is_lost)
      return failed(Outcome::TIMEOUT, "did not finish within its deadline");
    if (!reply->isFailed()) return reply;
    if (is_lost) end(false);
    const Outcome outcome = reply->getFailed().getOutcome();
    if (runs_candidate_ && !may_report(outcome, is_open_)) return failed(Outcome::CRASH, nonsense);
    return failed(outcome, failure_text(reply->getFailed()));
  } catch (const invalid_record&) {
    end(true);
    return failed(Outcome::CRASH, nonsense);
  }
}

program_result<record<schema::Reply>> gpu_process::request(const std::vector<char>& bytes,
                                                           std::span<const int> descriptors,
                                                           time_point deadline) {
  if (auto sent = send(bytes, descriptors, deadline); !sent) return failed(sent.error());
  auto given = receive(deadline);
  if (!given) return failed(given.error());
  return read_reply(*std::move(given));
}

program_result<opened_programs> gpu_process::open(const std::vector<program_source>& programs,
                                                  const schema::Artifact::Reader* artifact,
                                                  const opened_settings& asked,
                                                  time_point deadline) {
  record_builder<schema::Command> command;
  auto open = command->initOpen();
  describe_programs(open, programs);
  const bool has_code = artifact != nullptr && artifact->getCode().size() > 0;
  open.setHasObject(has_code);
  open.setJudgesCandidate(artifact != nullptr);
  open.setTf32(asked.tf32);
  open.setCudnnTf32(asked.cudnn_tf32);
  open.setCudnnBenchmark(asked.cudnn_benchmark);
  open.setCudaGraph(asked.cuda_graph);
  if (artifact == nullptr) open.setCompiled(asked.compiled);
  unique_fd file;
  std::vector<int> descriptors;
  if (has_code) {
    open.setKernels(artifact->getKernels());
    file = memory_file(view(artifact->getCode()));
    descriptors.push_back(file.get());
  }
  // The text of a module runs when it is opened.
  runs_candidate_ = runs_module_ && artifact != nullptr;
  const auto reply = request(command.finish().bytes(), descriptors, deadline);
  if (!reply) return failed(reply.error());
  if (!(*reply)->isOpened()) return failed(Outcome::CRASH, out_of_turn);
  is_open_ = true;
  return read_opened((*reply)->getOpened());
}

program_result<void> gpu_process::execute(const record<schema::Command>& command,
                                          schema::Reply::Which expected, time_point deadline) {
  const auto reply = request(command.bytes(), {}, deadline);
  if (!reply) return failed(reply.error());
  if ((*reply)->which() != expected) return failed(Outcome::CRASH, out_of_turn);
  return {};
}

program_result<void> gpu_process::stage(const record<schema::Command>& command,
                                        time_point deadline) {
  return execute(command, schema::Reply::STAGED, deadline);
}

program_result<void> gpu_process::go(time_point deadline) {
  record_builder<schema::Command> command;
  command->setGo();
  return execute(command.finish(), schema::Reply::DONE, deadline);
}

program_result<void> gpu_process::study(const study_plan& plan, time_point deadline) {
  return execute(study_command(plan), schema::Reply::DONE, deadline);
}

program_result<void> gpu_process::time(const std::vector<std::vector<std::uint64_t>>& keys,
                                       const flush_plan& flushes, time_point deadline) {
  record_builder<schema::Command> command;
  auto time = command->initTime();
  time.setCacheBytes(flushes.cache_bytes);
  time.setFlushes(flushes.times);
  auto calls = time.initKeys(static_cast<unsigned>(keys.size()));
  for (unsigned c = 0; c < calls.size(); ++c) {
    auto inputs = calls.init(c, static_cast<unsigned>(keys[c].size()));
    for (unsigned i = 0; i < inputs.size(); ++i) inputs.set(i, keys[c][i]);
  }
  return execute(command.finish(), schema::Reply::DONE, deadline);
}

program_result<void> gpu_process::burst(const burst_plan& plan, time_point deadline) {
  record_builder<schema::Command> command;
  auto burst = command->initBurst();
  burst.setRepeats(plan.repeats);
  burst.setWarmUps(plan.warm_ups);
  burst.setTraced(plan.traced);
  return execute(command.finish(), schema::Reply::DONE, deadline);
}

program_result<void> gpu_process::begin_turns(arena_head& head, time_point deadline) {
  head.turns = head.turns_taken = 0;
  record_builder<schema::Command> command;
  command->setTakeTurns();
  return send(command.finish().bytes(), {}, deadline);
}

program_result<void> gpu_process::pass_turn(arena_head& head, std::uint32_t turn,
                                            time_point deadline) {
  std::atomic_ref(head.turns).store(turn, std::memory_order_release);
  const std::atomic_ref taken(head.turns_taken);
  auto next_look = clock::now() + look_every;
  while (taken.load(std::memory_order_acquire) < turn) {
    const auto now = clock::now();
    if (now < next_look) continue;
    next_look = now + look_every;
    // A call that fails sends its failure, and a process that ends closes the socket.
    pollfd message{socket_.get(), POLLIN, 0};
    if (now < deadline && poll(&message, 1, 0) == 0) continue;
    auto given = receive(deadline);
    if (!given) return failed(given.error());
    const auto reply = read_reply(*std::move(given));
    return reply ? failed(Outcome::CRASH, out_of_turn) : failed(reply.error());
  }
  return {};
}

program_result<void> gpu_process::end_turns(time_point deadline) {
  auto given = receive(deadline);
  if (!given) return failed(given.error());
  const auto reply = read_reply(*std::move(given));
  if (!reply) return failed(reply.error());
  if (!(*reply)->isDone()) return failed(Outcome::CRASH, out_of_turn);
  return {};
}

void gpu_process::freeze() const {
  if (process_.running()) kill(process_.pid(), SIGSTOP);
}

void gpu_process::thaw() const {
  if (process_.running()) kill(process_.pid(), SIGCONT);
}

}  // namespace hone
