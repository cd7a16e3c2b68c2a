#include "evaluation/sandbox/client/zygote.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <utility>

#include "evaluation/sandbox/client/answers.hpp"
#include "evaluation/sandbox/client/module_interpreter.hpp"
#include "evaluation/sandbox/programs.hpp"
#include "process/framing.hpp"
#include "process/memory_file.hpp"
#include "process/process_facts.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto fork_limit = std::chrono::seconds(20);

std::vector<std::string> zygote_environment() {
  std::vector<std::string> environment = {
      "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "LC_ALL=C", "TORCH_CPP_LOG_LEVEL=ERROR", "HOME=/",
      "USER=hone"};
  inherit(environment, {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"});
  return environment;
}

std::int64_t now_ns(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// Stopping is not immediate; /proc shows when it has happened.
void await_stop(pid_t pid) {
  for (int attempt = 0; attempt < 100000; ++attempt) {
    const char state = facts_of(pid).state;
    if (state == 'T' || state == 'Z' || state == 'X') return;
    sched_yield();  // a process on the same core has to run once to stop
  }
}

std::string call_name(std::uint32_t number) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number));
  std::string text = name != nullptr ? name : "number " + std::to_string(number);
  std::free(name);
  return text;
}

}  // namespace

std::shared_ptr<sandbox_zygote> sandbox_zygote::start() {
  child_options options;
  options.arguments = {companion_program("hone-sandbox", "HONE_SANDBOX")};
  return std::shared_ptr<sandbox_zygote>(new sandbox_zygote(std::move(options), false));
}

std::shared_ptr<sandbox_zygote> sandbox_zygote::start_for_modules() {
  const module_interpreter python(module_interpreter::device::cpu);
  return std::shared_ptr<sandbox_zygote>(new sandbox_zygote(python.options(), true));
}

sandbox_zygote::sandbox_zygote(child_options options, bool runs_modules)
    : runs_modules_(runs_modules) {
  auto [ours, theirs] = socket_pair();
  socket_ = std::move(ours);
  options.ignores_stop_signals = true;
  options.environment = zygote_environment();
  const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  options.descriptors = {{null.get(), 0}, {null.get(), 1}, {2, 2}, {theirs.get(), 3}};
  process_ = child_process(options);
  theirs.reset();
  // The zygote answers as soon as it is warm.
  record_builder<schema::Command> hello;
  hello->setReap(0);
  const auto deadline = clock::now() + start_limit;
  if (!send_message_by(deadline, socket_.get(), hello.finish().bytes()) ||
      !receive_message(socket_.get(), deadline))
    throw std::runtime_error(name() + " did not start within two minutes");
  record_builder<schema::Command> measure;
  measure->setMeasureTurns();
  const auto costs = ask(measure.finish(), {});
  if (!costs->isTurnCosts()) throw std::runtime_error(name() + " does not answer");
  turn_ns_ = costs->getTurnCosts().getOfCall();
  kernels_ns_ = costs->getTurnCosts().getOfKernels();
  harness_ns_ = costs->getTurnCosts().getOfHarness();
}

record<schema::Reply> sandbox_zygote::ask(const record<schema::Command>& command,
                                          std::span<const int> descriptors) {
  const auto deadline = clock::now() + fork_limit;
  std::optional<received_message> message;
  if (send_message_by(deadline, socket_.get(), command.bytes(), descriptors))
    message = receive_message(socket_.get(), deadline);
  if (!message) {
    // A late reply would be taken for the next command's.
    process_.kill();
    socket_.reset();
    throw std::runtime_error(runs_modules_ ? "the process for Python modules does not answer"
                                           : "hone-sandbox does not answer");
  }
  return record<schema::Reply>::from_bytes(std::move(message->bytes));
}

std::string sandbox_zygote::name() const {
  return runs_modules_ ? "the process for Python modules" : "hone-sandbox";
}

std::unique_ptr<sandbox_session> sandbox_zygote::fork_session(arena* memory,
                                                              std::uint64_t private_bytes) {
  auto [ours, theirs] = socket_pair();
  record_builder<schema::Command> command;
  if (runs_modules_)
    private_bytes += facts_of(pid()).address_space + (memory != nullptr ? memory->size() : 0);
  command->initFork().setPrivateBytes(private_bytes);
  std::vector<int> descriptors = {theirs.get()};
  if (memory != nullptr) {
    memory->head().refused_call = 0;
    descriptors.push_back(memory->descriptor());
  }
  const auto reply = ask(command.finish(), descriptors);
  const int pid = reply->isForked() ? reply->getForked() : 0;
  if (pid <= 0) throw std::runtime_error(name() + " cannot fork");
  std::unique_ptr<sandbox_session> session(
      new sandbox_session(shared_from_this(), pid, std::move(ours), memory));
  if (runs_modules_) session->await_confinement(clock::now() + fork_limit);
  return session;
}

// A module may forge any later message.
void sandbox_session::await_confinement(time_point deadline) {
  try {
    const auto message = receive_message(socket_.get(), deadline);
    const auto reply = message ? read_reply(message->bytes)
                               : failed(Outcome::INFRASTRUCTURE, "it does not answer");
    if (!reply)
      throw std::runtime_error("cannot confine a process for Python modules: " +
                               reply.error().message);
  } catch (const connection_lost&) {
    throw std::runtime_error("cannot confine a process for Python modules: it ended");
  }
}

sandbox_session::sandbox_session(std::shared_ptr<sandbox_zygote> zygote, pid_t pid,
                                 unique_fd socket, arena* memory)
    : zygote_(std::move(zygote)),
      host_(clocked(pid)),
      socket_(std::move(socket)),
      memory_(memory) {}

sandbox_session::clocked_process sandbox_session::clocked(pid_t pid) {
  clocked_process found;
  found.pid = pid;
  if (clock_getcpuclockid(pid, &found.clock) != 0) found.clock = CLOCK_MONOTONIC;
  return found;
}

bool sandbox_session::adopt_kernels(pid_t pid) {
  unique_fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!handle || facts_of(pid).parent != host_.pid) return false;
  kernels_ = clocked(pid);
  kernels_.handle = std::move(handle);
  return true;
}

std::int64_t sandbox_session::processor_ns() const {
  return now_ns(host_.clock) + (kernels_.pid > 0 ? now_ns(kernels_.clock) : 0);
}

// Waits until the kernels have ended, because they could write to the arena until then.
void sandbox_session::end_kernels() {
  if (kernels_.pid <= 0) return;
  ::syscall(SYS_pidfd_send_signal, kernels_.handle.get(), SIGKILL, nullptr, 0);
  pollfd ended{kernels_.handle.get(), POLLIN, 0};
  poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(fork_limit).count()));
  kernels_ = {};
}

sandbox_session::~sandbox_session() {
  try {
    if (alive()) end(false);
  } catch (const std::exception&) {
    // The zygote has died, and the session with it.
  }
}

program_failure sandbox_session::end(bool timed_out) {
  end_kernels();
  const std::uint32_t refused = memory_ != nullptr ? memory_->head().refused_call : 0;
  record_builder<schema::Command> command;
  command->setReap(host_.pid);
  host_.pid = -1;
  socket_.reset();
  const int status = zygote_->ask(command.finish(), {})->getEnded();
  if (timed_out) return {Outcome::TIMEOUT, "", "did not finish within its deadline"};
  if (WIFEXITED(status) && WEXITSTATUS(status) == refused_call_exit_code) {
    const std::string name = refused > 0 ? "'" + call_name(refused - 1) + "'" : "of unknown number";
    return {Outcome::CRASH, "", "the system call " + name + " is not allowed"};
  }
  return {Outcome::CRASH, "", "the process ended: " + describe_status(status)};
}

program_result<std::vector<char>> sandbox_session::exchange(const std::vector<char>& bytes,
                                                            std::span<const int> descriptors,
                                                            time_point deadline) {
  if (!alive()) return failed(Outcome::INFRASTRUCTURE, "the session has ended");
  try {
    // A session that stops reading must not block this thread.
    if (!send_message_by(deadline, socket_.get(), bytes, descriptors)) return failed(end(true));
    auto message = receive_message(socket_.get(), deadline);
    if (!message) return failed(end(true));
    return std::move(message->bytes);
  } catch (const connection_lost&) {
    return failed(end(false));
  }
}

program_result<record<schema::Reply>> sandbox_session::read_reply(std::vector<char> bytes) {
  try {
    auto reply = record<schema::Reply>::from_bytes(std::move(bytes));
    if (!reply->isFailed()) return reply;
    // A candidate can write to the socket.
    const Outcome outcome = reply->getFailed().getOutcome();
    if (runs_candidate_ && !may_report(outcome, is_open_)) return failed(Outcome::CRASH, nonsense);
    return failed(outcome, failure_text(reply->getFailed()));
  } catch (const invalid_record&) {
    end(false);
    return failed(Outcome::CRASH, nonsense);
  }
}

program_result<record<schema::Reply>> sandbox_session::request(const std::vector<char>& bytes,
                                                               std::span<const int> descriptors,
                                                               time_point deadline) {
  auto answer = exchange(bytes, descriptors, deadline);
  if (!answer) return failed(answer.error());
  return read_reply(*std::move(answer));
}

program_result<opened_programs> sandbox_session::open(const std::vector<program_source>& programs,
                                                      const std::string& object,
                                                      bool judges_candidate, time_point deadline) {
  record_builder<schema::Command> command;
  auto open = command->initOpen();
  describe_programs(open, programs);
  open.setHasObject(!object.empty());
  open.setJudgesCandidate(judges_candidate);
  unique_fd file;
  std::vector<int> descriptors;
  if (!object.empty()) {
    file = memory_file(object);
    descriptors.push_back(file.get());
  }
  // A module's text runs when it is opened.
  runs_candidate_ = judges_candidate && programs.front().of_module.has_value();
  const auto reply = request(command.finish().bytes(), descriptors, deadline);
  if (!reply) return failed(reply.error());
  if (!(*reply)->isOpened()) return failed(Outcome::CRASH, out_of_turn);
  runs_candidate_ = judges_candidate;
  is_open_ = true;
  const pid_t kernels = (*reply)->getOpened().getKernelProcess();
  if (kernels != 0 && !adopt_kernels(kernels)) return failed(Outcome::CRASH, nonsense);
  return read_opened((*reply)->getOpened());
}

program_result<void> sandbox_session::stage(const record<schema::Command>& command,
                                            time_point deadline) {
  const auto reply = request(command.bytes(), {}, deadline);
  if (!reply) return failed(reply.error());
  if (!(*reply)->isStaged()) return failed(Outcome::CRASH, out_of_turn);
  return {};
}

program_result<void> sandbox_session::prepare(const record<schema::Command>& command,
                                              time_point deadline) {
  auto staged = stage(command, deadline);
  if (staged) last_run_end_ns_ = processor_ns();
  return staged;
}

program_result<batch_clock> sandbox_session::go(std::size_t calls, time_point deadline,
                                                const program_session::input_writer& write,
                                                const std::function<void(std::size_t)>& read) {
  static const std::vector<char> begin = [] {
    record_builder<schema::Command> command;
    command->setGo();
    return command.finish().bytes();
  }();
  if (!alive()) return failed(Outcome::INFRASTRUCTURE, "the session has ended");
  try {
    send_message(socket_.get(), begin);
  } catch (const connection_lost&) {
    return failed(end(false));
  }
  batch_clock total;
  std::int64_t outside = 0;
  std::int64_t before_turn = last_run_end_ns_;
  for (std::size_t call = 0; call < calls; ++call) {
    if (write) write(call);
    // Both processes sleep at both readings of their processor clocks, so all processor time in
    // between belongs to the call.
    const std::int64_t cpu_before = processor_ns();
    const std::int64_t wall_before = now_ns(CLOCK_MONOTONIC);
    auto turn = exchange({}, {}, deadline);
    total.wall_ns += static_cast<double>(now_ns(CLOCK_MONOTONIC) - wall_before);
    if (!turn) return failed(turn.error());
    const std::int64_t cpu_after = processor_ns();
    if (!turn->empty()) {
      const auto reply = read_reply(*std::move(turn));
      return reply ? failed(Outcome::CRASH, out_of_turn) : failed(reply.error());
    }
    total.device_ns += static_cast<double>(cpu_after - cpu_before);
    if (before_turn >= 0) outside += cpu_before - before_turn;
    before_turn = cpu_after;
    if (read) read(call);
  }
  const auto end_of_run = receive_end(deadline);
  if (!end_of_run) return failed(end_of_run.error());
  last_run_end_ns_ = processor_ns();
  if (before_turn >= 0) outside += last_run_end_ns_ - before_turn;
  total.outside_ns = static_cast<double>(outside);
  // What passing the turns takes is no work of the program.
  const double turns = static_cast<double>(calls) * zygote_->turn_ns(kernels_.pid > 0);
  constexpr double min_share = 0.1;
  total.device_ns = std::max(min_share * total.device_ns, total.device_ns - turns);
  return total;
}

program_result<void> sandbox_session::receive_end(time_point deadline) {
  try {
    auto message = receive_message(socket_.get(), deadline);
    if (!message) return failed(end(true));
    const auto reply = read_reply(std::move(message->bytes));
    if (!reply) return failed(reply.error());
    if (!(*reply)->isDone()) return failed(Outcome::CRASH, out_of_turn);
    return {};
  } catch (const connection_lost&) {
    return failed(end(false));
  }
}

program_result<void> sandbox_session::study(const study_plan& plan, time_point deadline) {
  const auto reply = request(study_command(plan).bytes(), {}, deadline);
  if (!reply) return failed(reply.error());
  if (!(*reply)->isDone()) return failed(Outcome::CRASH, out_of_turn);
  return {};
}

bool sandbox_session::has_threads() const { return facts_of(host_.pid).threads > 1; }

// Kernels run only while the session waits for them, so they are stopped already.
void sandbox_session::freeze() {
  if (!alive()) return;
  kill(host_.pid, SIGSTOP);
  await_stop(host_.pid);
}

void sandbox_session::thaw() {
  if (alive()) kill(host_.pid, SIGCONT);
}

}  // namespace hone
