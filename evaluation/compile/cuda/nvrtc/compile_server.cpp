#include "evaluation/compile/cuda/nvrtc/compile_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "embedded/typical_block.hpp"
#include "evaluation/compile/cuda/nvrtc/memory.hpp"
#include "process/child_process.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

// Memory that a compilation may take beyond the address space that the library has reserved, which
// is gigabytes on large machines.
constexpr rlim_t compilation_memory = 4ULL << 30U;
constexpr rlim_t file_bytes = 256U << 20U;
// Descriptors of a compilation, each of which may be a file in memory. NVRTC has 12 open at most.
constexpr rlim_t open_files = 64;
// CUDA's headers have 24 MiB.
constexpr std::uint64_t max_header_bytes = 1U << 30U;
constexpr rlim_t warm_up_seconds = 2;
// After this time without a block, processes are forked for the next blocks.
constexpr int idle_ms = 2;

record<schema::NvrtcResult> to_record(const nvrtc_library::result& made) {
  record_builder<schema::NvrtcResult> result;
  result->setCompiled(made.compiled);
  result->setCode(as_data(made.code));
  result->setPtx(made.ptx);
  auto symbols = result->initSymbols(static_cast<unsigned>(made.symbols.size()));
  for (unsigned i = 0; i < symbols.size(); ++i) symbols.set(i, made.symbols[i]);
  result->setLog(made.log);
  return result.finish();
}

record<schema::NvrtcResult> stopped(const std::string& why) {
  record_builder<schema::NvrtcResult> result;
  result->setStopped(why);
  return result.finish();
}

bool becomes_readable(int socket, int within_ms) {
  pollfd one{socket, POLLIN, 0};
  return poll(&one, 1, within_ms) > 0;
}

// Hides files in a trial fork. If a compilation could not hide them, the failure would be taken for
// the block's fault.
void try_to_hide_others(const visible_files& files) {
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      files.hide_others();
      _exit(open("/", O_RDONLY) < 0 ? 0 : 1);
    } catch (const std::exception&) {
      _exit(1);
    }
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
    throw std::runtime_error(
        "compilations cannot be confined: this Linux kernel accepts no system call filter");
}

// Returns the folders that do not lie in another one.
std::vector<std::filesystem::path> outermost(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> found;
  for (const std::string& folder : folders) {
    const bool is_inner =
        std::any_of(folders.begin(), folders.end(),
                    [&](const std::string& other) { return folder.starts_with(other + "/"); });
    if (!is_inner) found.emplace_back(folder);
  }
  return found;
}

}  // namespace

compile_server::readiness compile_server::readiness::for_this_machine() {
  constexpr int enough_cores = 4;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) < enough_cores)
    return {};
  return {3, 3, embedded::typical_block};
}

compile_server::waiting_process::~waiting_process() {
  stop();
  if (pid > 0) waitpid(pid, nullptr, 0);
}

void compile_server::waiting_process::stop() const {
  if (pid > 0) kill(pid, SIGKILL);
}

compile_server::compile_server(int socket) : socket_(socket), heap_(sbrk(0)) {}

void compile_server::greet() const {
  const nvrtc_library& library = compiler_.library();
  record_builder<schema::NvrtcGreeting> greeting;
  greeting->setMajor(library.major());
  greeting->setMinor(library.minor());
  const auto& found = library.include_folders();
  auto folders = greeting->initIncludeFolders(static_cast<unsigned>(found.size()));
  for (unsigned i = 0; i < folders.size(); ++i) folders.set(i, found[i]);
  send_message(socket_, greeting.finish().bytes());
}

void compile_server::read_headers() {
  std::vector<std::filesystem::path> readable = outermost(compiler_.library().include_folders());
  readable.emplace_back(block_compiler::prelude_file);
  files_.read(readable, max_header_bytes);
  reserved_ = address_space();
  try_to_hide_others(files_);
}

void compile_server::serve() {
  while (true) {
    if (!becomes_readable(socket_, idle_ms)) {
      working_.reset();
      fork_ready(readiness_.idle);
    }
    const auto job =
        record<schema::NvrtcJob>::from_bytes(std::move(receive_message(socket_)->bytes));
    send_message(socket_, serve_one(job).bytes());
    if (working_) working_->stop();  // it may have missed its deadline
  }
}

// Compiles a block in the way in which the last block was compiled, while no block waits. That
// copies the pages that are shared with the parent, loads headers, and lays out the library's
// memory.
void compile_server::warm_up() const {
  own_memory(heap_);
  if (!last_) return;
  try {
    compiler_.warm_up(**last_, readiness_.warm_up);
  } catch (const std::exception&) {
    // The block that follows reports the problem.
  }
}

void compile_server::fork_ready(std::size_t count) {
  while (ready_.size() < count) {
    auto [ours, theirs] = socket_pair();
    const pid_t pid = fork();
    if (pid == 0) {
      ours.reset();
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(socket_);
      for (const auto& other : ready_) close(other->socket.get());
      if (working_) close(working_->socket.get());
      warm_up();
      confine_and_compile(theirs.get());
    }
    if (pid < 0) return;
    ready_.push_back(std::make_unique<waiting_process>(pid, std::move(ours)));
  }
}

record<schema::NvrtcResult> compile_server::serve_one(const record<schema::NvrtcJob>& job) {
  try {
    last_ = job;
    // Only processes that are forked afterwards can use a new precompiled header.
    if (compiler_.precompile(*job)) ready_.clear();
    hand_out(job);
    working_ = std::exchange(ready_.front(), nullptr);
    ready_.pop_front();
    fork_ready(readiness_.working);
    return answer_of(*working_, *job);
  } catch (const std::exception& e) {
    return stopped(e.what());
  }
}

// Gives the job to the first process that accepts it, because a process may have died while it
// waited.
void compile_server::hand_out(const record<schema::NvrtcJob>& job) {
  const auto deadline = clock::now() + std::chrono::milliseconds(job->getTimeMs());
  for (std::size_t attempt = 0; attempt <= readiness_.idle; ++attempt) {
    if (ready_.empty()) fork_ready(1);
    if (ready_.empty()) break;
    try {
      if (send_message_by(deadline, ready_.front()->socket.get(), job.bytes())) return;
    } catch (const connection_lost&) {
      // The next process gets the job.
    }
    ready_.pop_front();
  }
  throw std::runtime_error("cannot start another process for compiling");
}

record<schema::NvrtcResult> compile_server::answer_of(waiting_process& one,
                                                      const schema::NvrtcJob::Reader& job) {
  try {
    auto message = receive_message(one.socket.get(),
                                   clock::now() + std::chrono::milliseconds(job.getTimeMs()));
    return message ? record<schema::NvrtcResult>::from_bytes(std::move(message->bytes))
                   : stopped("the compiler was stopped at its deadline");
  } catch (const connection_lost&) {
    int status = 0;
    one.stop();  // it may still be writing a message that is too large
    waitpid(one.pid, &status, 0);
    one.pid = -1;
    const bool is_out_of_time = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
    return stopped(is_out_of_time ? "the compiler was stopped at its deadline"
                                  : "the compiler ended (" + describe_status(status) +
                                        "): the block is nested too deeply, or too large");
  }
}

// Runs in the forked process: compiles one block and exits.
void compile_server::confine_and_compile(int socket) {
  try {
    // The precompiled headers, and the folder in which NVRTC looks for them.
    files_.add_opened(".");
    for (const auto& entry : std::filesystem::directory_iterator("."))
      if (entry.path().extension() == ".pch") files_.add_opened(entry.path());
    const rlim_t most = reserved_ + compilation_memory;
    const rlimit memory{most, most};
    const rlimit file{file_bytes, file_bytes};
    const rlimit files{open_files, open_files};
    if (setrlimit(RLIMIT_AS, &memory) != 0 || setrlimit(RLIMIT_FSIZE, &file) != 0 ||
        setrlimit(RLIMIT_NOFILE, &files) != 0)
      _exit(1);
    files_.hide_others();
    const auto job =
        record<schema::NvrtcJob>::from_bytes(std::move(receive_message(socket)->bytes));
    const rlim_t seconds = job->getTimeMs() / 1000 + 1 + warm_up_seconds;
    const rlimit time{seconds, seconds + 1};  // SIGXCPU at the first, SIGKILL at the second
    if (setrlimit(RLIMIT_CPU, &time) != 0) _exit(1);
    try {
      send_message(socket, to_record(compiler_.compile(*job)).bytes());
    } catch (const connection_lost&) {
      _exit(1);
    } catch (const std::exception& e) {
      send_message(socket, stopped(e.what()).bytes());
    }
  } catch (const std::exception&) {
    _exit(1);
  }
  _exit(0);  // without destructors, which would remove the precompiled headers' files
}

}  // namespace hone
