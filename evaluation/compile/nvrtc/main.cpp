// hone-nvrtc: a warm process that has NVRTC loaded and forks one compilation after another, so that
// a variant's text meets a process that no other variant's text has been in. CUDA's headers, which
// are nobody's, are precompiled here: a precompiled header is good for the process that made it and
// for its forks. Started by a compiler with its command socket as descriptor 3 and a folder of its
// own to start in; ends with it.

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "embedded/cuda_prelude.hpp"
#include "embedded/typical_block.hpp"
#include "evaluation/compile/nvrtc/confinement.hpp"
#include "evaluation/compile/nvrtc/library.hpp"
#include "evaluation/compile/nvrtc/memory.hpp"
#include "evaluation/compile/nvrtc/nvrtc.capnp.h"
#include "evaluation/sandbox/framing.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr int hasty = 8;  // the part of its time that a refused block may have taken, to be
                          // compiled again for its lines
constexpr std::size_t most_ptx_bytes = 1U << 20U;
constexpr int command_socket = 3;
constexpr rlim_t compilation_memory =
    4ULL << 30U;  // beyond what the library has reserved: gigabytes, on large machines
constexpr rlim_t file_bytes = 256U << 20U;
constexpr rlim_t warm_up_seconds = 2;
constexpr std::size_t max_header_sets = 16;
const std::vector<std::string> use_precompiled = {"--pch", "--pch-dir=."};
constexpr int idle_ms =
    2;  // without a block that long, there is time to make a process for the next
constexpr auto prelude_file = "hone_prelude.cuh";

std::vector<std::string> texts(const capnp::List<capnp::Text>::Reader& list) {
  std::vector<std::string> all;
  for (const auto text : list) all.emplace_back(text.cStr());
  return all;
}

// Cooperative groups drag libcu++ in, of which their own functions need little: without it a
// precompiled header has 14 MB and not 100, and a block with fp16, bf16 and cooperative groups
// takes a third of the time (doc/decisions/010). What does need it, says so.
bool can_do_without_libcu(const schema::NvrtcJob::Reader& job) {
  const std::string_view block = view(job.getBlock());
  for (const std::string_view need :
       {"cuda::", "<cuda/", "<cub/", "<thrust/", "_update", "thread_scope"}) {
    if (block.find(need) != std::string_view::npos) return false;
  }
  bool is_asked_for = false;
  for (const auto text : job.getHeaders()) {
    const std::string_view header = view(text);
    if (header.starts_with("cuda/") || header.starts_with("cub/") || header.starts_with("thrust/"))
      return false;
    is_asked_for = is_asked_for || header.starts_with("cooperative_groups");
  }
  return is_asked_for;
}

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

// Processes that wait for a block, and what each of them compiles before. Where cores are few that
// is in the way of the block that compiles meanwhile: one gets ready beside it, and compiles
// nothing much.
struct readiness {
  std::size_t idle = 2;     // processes, while no block compiles
  std::size_t working = 1;  // while one does
  std::string_view warm_up = "extern \"C\" __global__ void hone_nothing() {}\n";

  static readiness for_this_machine() {
    constexpr int enough_cores = 4;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) < enough_cores)
      return {};
    return {3, 3, embedded::typical_block};
  }
};

bool becomes_readable(int socket, int within_ms) {
  pollfd one{socket, POLLIN, 0};
  return poll(&one, 1, within_ms) > 0;
}

class server {
 public:
  // The first compilation loads what the library loads late: once confined, it could not.
  server() {
    keep_memory();
    std::ofstream(prelude_file) << embedded::cuda_prelude;
    if (const auto first =
            nvrtc_.compile("extern \"C\" __global__ void nothing() {}\n", {"-arch=sm_80"}, {});
        !first.compiled)
      throw std::runtime_error("NVRTC does not compile: " + first.log);
    reserved_ = address_space();
  }

  void greet() const {
    record_builder<schema::NvrtcGreeting> greeting;
    greeting->setMajor(nvrtc_.major());
    greeting->setMinor(nvrtc_.minor());
    auto folders =
        greeting->initIncludeFolders(static_cast<unsigned>(nvrtc_.include_folders().size()));
    for (unsigned i = 0; i < folders.size(); ++i) folders.set(i, nvrtc_.include_folders()[i]);
    send_message(command_socket, greeting.finish().bytes());
  }
  void confine() const {
    std::vector<std::string> readable = nvrtc_.include_folders();
    readable.push_back(nvrtc_.folder());
    confine_files(readable, ".");
    try_filter();
  }
  // Making a process takes milliseconds, and so does taking one apart: both wait until there is
  // nothing else to do, or stand beside a block that compiles, as far as `readiness` allows.
  [[noreturn]] void serve() {
    while (true) {
      if (!becomes_readable(command_socket, idle_ms)) {
        working_.reset();
        fork_ready(readiness_.idle);
      }
      const auto job =
          record<schema::NvrtcJob>::from_bytes(std::move(receive_message(command_socket)->bytes));
      send_message(command_socket, serve_one(job).bytes());
      if (working_) working_->stop();  // it may be behind its deadline
    }
  }

 private:
  // A fork that could not install its filter would be taken for a block's own fault. And forks find
  // the filter made.
  static void try_filter() {
    const auto& filter = toolchain_filter();
    const pid_t pid = fork();
    if (pid == 0) {
      try {
        install_filter(filter);
        _exit(0);
      } catch (const std::exception&) {
        _exit(1);
      }
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
      throw std::runtime_error(
          "compilations cannot be confined: this kernel takes no system call filter");
  }

  std::vector<std::string> options_of(const schema::NvrtcJob::Reader& job) const {
    std::vector<std::string> options = texts(job.getOptions());
    for (const std::string& folder : nvrtc_.include_folders()) options.push_back("-I" + folder);
    options.push_back("-I.");
    options.emplace_back("--no-cache");  // of the library's own, which nobody here may open
    if (can_do_without_libcu(job)) options.emplace_back("-D_CG_LIMIT_INCLUDED_DEPENDENCIES");
    return options;
  }

  // Everything up to here is the same for all blocks with these headers: it is what gets
  // precompiled.
  static std::string head_of(const schema::NvrtcJob::Reader& job) {
    std::string head = std::string("#include \"") + prelude_file + "\"\n";
    for (const auto header : job.getHeaders())
      head += "#include <" + std::string(header.cStr()) + ">\n";
    return head + "#pragma hdrstop\n";
  }
  // A precompiled header does not depend on it; variants try every number.
  static bool is_for_back_end(const std::string& option) {
    return option.starts_with("--maxrregcount");
  }
  static std::string key_of(const std::string& head, const std::vector<std::string>& options) {
    std::string key = head;
    for (const std::string& option : options) key += is_for_back_end(option) ? "" : option + "\n";
    return key;
  }

  // Makes the precompiled header, where it is worth it: CUDA's headers take a second, the prelude a
  // few milliseconds. Whether that was news.
  bool precompile(const schema::NvrtcJob::Reader& job) {
    if (job.getHeaders().size() == 0) return false;
    const std::string head = head_of(job);
    std::vector<std::string> options = options_of(job);
    const std::string key = key_of(head, options);
    if (precompiled_.contains(key) || precompiled_.size() == max_header_sets) return false;
    std::erase_if(options, is_for_back_end);
    options.insert(options.end(), use_precompiled.begin(), use_precompiled.end());
    return precompiled_[key] =
               nvrtc_.compile(head + "static void hone_nothing() {}\n", options, {}).compiled;
  }

  // A fork that waits for a block, and its socket; killed with its owner.
  struct waiting_process {
    pid_t pid = -1;
    unique_fd socket;

    waiting_process(pid_t id, unique_fd to_it) : pid(id), socket(std::move(to_it)) {}
    waiting_process(const waiting_process&) = delete;
    waiting_process& operator=(const waiting_process&) = delete;
    ~waiting_process() {
      stop();
      if (pid > 0) waitpid(pid, nullptr, 0);
    }
    void stop() const {
      if (pid > 0) kill(pid, SIGKILL);
    }
  };

  // Compiles something once, as the last block was compiled: pages that are shared with the parent
  // are copied, headers loaded and the library's memory laid out before the next block comes, and
  // not while it waits.
  void warm_up() const {
    own_memory(heap_);
    if (!last_) return;
    const auto job = **last_;
    try {
      (void)nvrtc_.compile(head_of(job) + std::string(readiness_.warm_up), all_options(job), {});
    } catch (const std::exception&) {
      // Then the block will say it.
    }
  }

  void fork_ready(std::size_t as_many) {
    while (ready_.size() < as_many) {
      auto [ours, theirs] = socket_pair();
      const pid_t pid = fork();
      if (pid == 0) {
        ours.reset();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(command_socket);
        for (const auto& other : ready_) close(other->socket.get());
        if (working_) close(working_->socket.get());
        warm_up();
        confine_and_compile(theirs.get());
      }
      if (pid < 0) return;
      ready_.push_back(std::make_unique<waiting_process>(pid, std::move(ours)));
    }
  }

  record<schema::NvrtcResult> serve_one(const record<schema::NvrtcJob>& job) {
    try {
      last_ = job;
      // A precompiled header is known to those who are forked behind it.
      if (precompile(*job)) ready_.clear();
      hand_out(job);
      working_ = std::exchange(ready_.front(), nullptr);
      ready_.pop_front();
      fork_ready(readiness_.working);
      return answer_of(*working_, *job);
    } catch (const std::exception& e) {
      return stopped(e.what());
    }
  }

  // Gives the job to the first process that takes it: one may have died while it waited.
  void hand_out(const record<schema::NvrtcJob>& job) {
    for (std::size_t attempt = 0; attempt <= readiness_.idle; ++attempt) {
      if (ready_.empty()) fork_ready(1);
      if (ready_.empty()) break;
      try {
        return send_message(ready_.front()->socket.get(), job.bytes());
      } catch (const connection_lost&) {
        ready_.pop_front();
      }
    }
    throw std::runtime_error("there is no room for another process");
  }

  static record<schema::NvrtcResult> answer_of(waiting_process& one,
                                               const schema::NvrtcJob::Reader& job) {
    try {
      auto message = receive_message(one.socket.get(),
                                     clock::now() + std::chrono::milliseconds(job.getTimeMs()));
      return message ? record<schema::NvrtcResult>::from_bytes(std::move(message->bytes))
                     : stopped("the compiler was stopped at its deadline");
    } catch (const connection_lost&) {
      int status = 0;
      one.stop();  // it may still be writing what was too much
      waitpid(one.pid, &status, 0);
      one.pid = -1;
      const bool is_out_of_time = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
      return stopped(is_out_of_time ? "the compiler was stopped at its deadline"
                                    : "the compiler ended (" + describe_status(status) +
                                          "): the block is nested too deeply, or too large");
    }
  }

  std::vector<std::string> all_options(const schema::NvrtcJob::Reader& job) const {
    std::vector<std::string> options = options_of(job);
    const auto precompiled = precompiled_.find(key_of(head_of(job), options));
    if (precompiled != precompiled_.end() && precompiled->second)
      options.insert(options.end(), use_precompiled.begin(), use_precompiled.end());
    return options;
  }

  nvrtc_library::result compile(const schema::NvrtcJob::Reader& job) const {
    const std::string head = head_of(job);
    const std::vector<std::string> options = all_options(job);
    const std::string source = head + job.getBlock().cStr();
    const std::vector<std::string> kernels = texts(job.getKernels());
    if (job.getHeaders().size() == 0) {
      // Without textures and the runtime's own functions, which hardly any block uses, a tenth is
      // saved.
      std::vector<std::string> fewer = options;
      fewer.emplace_back("--minimal");
      if (auto made = nvrtc_.compile(source, fewer, kernels); made.compiled) return made;
    }
    const auto begin = clock::now();
    auto made = nvrtc_.compile(source, options, kernels);
    const bool is_assemblers = made.log.find("ptxas application ptx input") != std::string::npos;
    if (made.compiled || !is_assemblers ||
        clock::now() - begin > std::chrono::milliseconds(job.getTimeMs()) / hasty)
      return made;
    try {
      return refused_with_lines(source, options_of(job), kernels).value_or(made);
    } catch (const std::exception&) {
      return made;
    }
  }

  // The assembler speaks of lines of PTX. Once more, with the block's lines in that, and the PTX
  // itself beside what is said of it.
  std::optional<nvrtc_library::result> refused_with_lines(
      const std::string& source, std::vector<std::string> options,
      const std::vector<std::string>& kernels) const {
    options.emplace_back("-lineinfo");
    auto made = nvrtc_.compile(source, options, kernels);
    if (made.compiled) return std::nullopt;
    constexpr std::string_view real = "-arch=sm_";
    const auto arch = std::find_if(options.begin(), options.end(), [&](const std::string& option) {
      return option.starts_with(real);
    });
    if (arch != options.end()) *arch = "-arch=compute_" + arch->substr(real.size());
    if (auto ptx = nvrtc_.compile(source, options, kernels).ptx; ptx.size() <= most_ptx_bytes)
      made.ptx = std::move(ptx);
    return made;
  }

  // In the forked process: one block, and the end.
  [[noreturn]] void confine_and_compile(int socket) const {
    try {
      const rlim_t most = reserved_ + compilation_memory;
      const rlimit memory{most, most};
      const rlimit file{file_bytes, file_bytes};
      if (setrlimit(RLIMIT_AS, &memory) != 0 || setrlimit(RLIMIT_FSIZE, &file) != 0) _exit(1);
      install_filter(toolchain_filter());
      const auto job =
          record<schema::NvrtcJob>::from_bytes(std::move(receive_message(socket)->bytes));
      const rlim_t seconds = job->getTimeMs() / 1000 + 1 + warm_up_seconds;
      const rlimit time{seconds, seconds + 1};  // SIGXCPU at the first, SIGKILL at the second
      if (setrlimit(RLIMIT_CPU, &time) != 0) _exit(1);
      try {
        send_message(socket, to_record(compile(*job)).bytes());
      } catch (const connection_lost&) {
        _exit(1);
      } catch (const std::exception& e) {
        send_message(socket, stopped(e.what()).bytes());
      }
    } catch (const std::exception&) {
      _exit(1);
    }
    _exit(0);  // leaves the precompiled headers' files to the process that made them
  }

  const readiness readiness_ = readiness::for_this_machine();
  const void* heap_ = sbrk(0);  // where it began to grow
  nvrtc_library nvrtc_;
  std::map<std::string, bool> precompiled_;  // by head and options
  std::deque<std::unique_ptr<waiting_process>> ready_;
  std::unique_ptr<waiting_process> working_;  // compiles, or has done so
  std::optional<record<schema::NvrtcJob>> last_;
  rlim_t reserved_ = 0;  // address space that the library takes before any block does
};

void report(const std::string& problem) {
  record_builder<schema::NvrtcGreeting> greeting;
  greeting->setProblem(problem);
  greeting->initIncludeFolders(0);
  send_message(command_socket, greeting.finish().bytes());
}

}  // namespace
}  // namespace hone

int main(int argc, char** /*argv*/) {
  if (argc != 1 || fcntl(hone::command_socket, F_GETFD) < 0) {
    std::fputs("hone-nvrtc compiles for hone; it is not started by hand.\n", stderr);
    return 2;
  }
  try {
    try {
      hone::server one;
      one.confine();
      one.greet();
      one.serve();
    } catch (const hone::connection_lost&) {
      return 0;
    } catch (const std::exception& e) {
      hone::report(e.what());
      return 1;
    }
  } catch (const std::exception&) {
    return 1;
  }
}
