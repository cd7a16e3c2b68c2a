#include "evaluation/sandbox/gpu_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <system_error>

#include "evaluation/sandbox/framing.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr auto start_limit =
    std::chrono::seconds(120);  // LibTorch and CUDA's libraries from a cold disk
constexpr auto end_limit = std::chrono::seconds(30);  // the driver stops what still runs
// What has failed on every multiprocessor at once is told to the process seconds later; and what is
// merely slow need not be killed.
constexpr auto report_limit = std::chrono::seconds(4);

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

shared_head::shared_head() : file_(memfd_create("hone-arena-head", MFD_CLOEXEC)) {
  if (!file_ || ftruncate(file_.get(), arena_head_bytes) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make an arena's head");
  void* mapped =
      mmap(nullptr, arena_head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "cannot map an arena's head");
  head_ = static_cast<arena_head*>(mapped);
}

shared_head::~shared_head() { munmap(head_, arena_head_bytes); }

gpu_process::gpu_process(const std::string& visible, const gpu_attachment& attachment)
    : serial_(next_serial()), core_(attachment.core) {
  auto [ours, theirs] = socket_pair();
  socket_ = std::move(ours);
  child_options options;
  options.arguments = {companion_program("hone-gpu-sandbox", "HONE_GPU_SANDBOX")};
  options.environment = {"OMP_NUM_THREADS=1",
                         "MKL_NUM_THREADS=1",
                         "LC_ALL=C",
                         "TORCH_CPP_LOG_LEVEL=ERROR",
                         "CUDA_VISIBLE_DEVICES=" + visible,
                         "CUDA_CACHE_DISABLE=1"};
  inherit(options.environment, {"LD_LIBRARY_PATH", "CUDA_DEVICE_ORDER"});
  const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  options.descriptors = {{null.get(), 0}, {null.get(), 1}, {null.get(), 2}, {theirs.get(), 3}};
  process_ = child_process(options);
  theirs.reset();
  const timeval send_limit{10, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &send_limit, sizeof send_limit);

  record_builder<schema::Command> command;
  auto attach = command->initAttach();
  attach.setHandle(as_data(attachment.handle));
  attach.setBytes(attachment.bytes);
  attach.setTools(as_data(attachment.tools));
  attach.setSpoilSymbol(attachment.spoil_symbol);
  attach.setScrambleSymbol(attachment.scramble_symbol);
  const int head = attachment.head;
  send_message(socket_.get(), command.finish().bytes(), {&head, 1});
}

bool gpu_process::alive() { return ready_ && process_.running() && !process_.wait(clock::now()); }

void gpu_process::await_ready() {
  if (ready_) return;
  try {
    auto message = receive_message(socket_.get(), clock::now() + start_limit);
    if (!message) throw std::runtime_error("hone-gpu-sandbox did not start within two minutes");
    const auto reply = record<schema::Reply>::from_bytes(std::move(message->bytes));
    if (reply->isFailed())
      throw std::runtime_error("hone-gpu-sandbox does not start: " +
                               std::string(view(reply->getFailed().getMessage())));
  } catch (const connection_lost&) {
    const auto status = process_.wait(clock::now() + end_limit);
    throw std::runtime_error("hone-gpu-sandbox does not start: " +
                             (status ? describe_status(*status) : "no answer"));
  }
  // Only now: several that start at once share all cores.
  cpu_set_t core;
  CPU_ZERO(&core);
  if (core_ >= 0) {
    CPU_SET(core_, &core);
    sched_setaffinity(process_.pid(), sizeof core, &core);
  }
  ready_ = true;
}

session_failure gpu_process::end(bool timed_out) {
  if (timed_out) {
    process_.kill();
    socket_.reset();
    return {Outcome::TIMEOUT, "did not finish within its deadline", true};
  }
  const auto status = process_.wait(clock::now() + end_limit);
  process_.kill();
  socket_.reset();
  return {Outcome::CRASH,
          "the process ended: " + (status ? describe_status(*status) : "it had to be killed"),
          true};
}

std::variant<record<schema::Reply>, session_failure> gpu_process::request(
    const std::vector<char>& bytes, std::span<const int> descriptors, time_point deadline) {
  if (!process_.running() || !ready_)
    return session_failure{Outcome::INFRASTRUCTURE, "the session has ended", true};
  try {
    send_message(socket_.get(), bytes, descriptors);
    auto message = receive_message(socket_.get(), deadline);
    const bool late = !message;
    if (late) message = receive_message(socket_.get(), clock::now() + report_limit);
    if (!message) return end(true);
    auto reply = record<schema::Reply>::from_bytes(std::move(message->bytes));
    if (late && !(reply->isFailed() && reply->getFailed().getIsLast()))
      return session_failure{Outcome::TIMEOUT, "did not finish within its deadline", false};
    if (!reply->isFailed()) return reply;
    const auto failed = reply->getFailed();
    session_failure failure{failed.getOutcome(), failure_text(failed), failed.getIsLast()};
    if (failure.gone) end(false);
    return failure;
  } catch (const connection_lost&) {
    return end(false);
  } catch (const invalid_record&) {
    end(true);
    return session_failure{Outcome::CRASH, "the process wrote nonsense to its command socket",
                           true};
  }
}

std::variant<opened_programs, session_failure> gpu_process::open(
    const std::vector<host_source>& programs, const schema::Artifact::Reader* artifact,
    const settings& asked, time_point deadline) {
  record_builder<schema::Command> command;
  auto open = command->initOpen();
  describe_programs(open, programs);
  const bool has_code = artifact != nullptr && artifact->getCode().size() > 0;
  open.setHasObject(has_code);
  open.setJudgesCandidate(artifact != nullptr);
  open.setTf32(asked.tf32);
  open.setCudnnBenchmark(asked.cudnn_benchmark);
  open.setCudaGraph(asked.cuda_graph);
  unique_fd file;
  std::vector<int> descriptors;
  if (has_code) {
    open.setKernels(artifact->getKernels());
    file = memory_file(view(artifact->getCode()));
    descriptors.push_back(file.get());
  }
  auto result = request(command.finish().bytes(), descriptors, deadline);
  if (auto* failure = std::get_if<session_failure>(&result)) return *failure;
  const auto& reply = std::get<record<schema::Reply>>(result);
  if (!reply->isOpened())
    return session_failure{Outcome::CRASH, "the process answered out of turn", false};
  return read_opened(reply->getOpened());
}

std::optional<session_failure> gpu_process::run(const record<schema::Command>& command,
                                                schema::Reply::Which expected,
                                                time_point deadline) {
  auto result = request(command.bytes(), {}, deadline);
  if (auto* failure = std::get_if<session_failure>(&result)) return *failure;
  if (std::get<record<schema::Reply>>(result)->which() != expected)
    return session_failure{Outcome::CRASH, "the process answered out of turn", false};
  return std::nullopt;
}

std::optional<session_failure> gpu_process::stage(const record<schema::Command>& command,
                                                  time_point deadline) {
  return run(command, schema::Reply::STAGED, deadline);
}

std::optional<session_failure> gpu_process::go(time_point deadline) {
  record_builder<schema::Command> command;
  command->setGo();
  return run(command.finish(), schema::Reply::DONE, deadline);
}

std::optional<session_failure> gpu_process::time(
    const std::vector<std::vector<std::uint64_t>>& keys, const flush_plan& flushes,
    time_point deadline) {
  record_builder<schema::Command> command;
  auto time = command->initTime();
  time.setCacheBytes(flushes.cache_bytes);
  time.setFlushes(flushes.times);
  auto calls = time.initKeys(static_cast<unsigned>(keys.size()));
  for (unsigned c = 0; c < calls.size(); ++c) {
    auto inputs = calls.init(c, static_cast<unsigned>(keys[c].size()));
    for (unsigned i = 0; i < inputs.size(); ++i) inputs.set(i, keys[c][i]);
  }
  return run(command.finish(), schema::Reply::DONE, deadline);
}

std::optional<session_failure> gpu_process::train(std::uint32_t repeats, bool traced,
                                                  time_point deadline) {
  record_builder<schema::Command> command;
  auto train = command->initTrain();
  train.setRepeats(repeats);
  train.setTraced(traced);
  return run(command.finish(), schema::Reply::DONE, deadline);
}

}  // namespace hone
