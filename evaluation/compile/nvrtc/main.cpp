// hone-nvrtc: a warm process that has NVRTC loaded and forks one compilation after another, so that a variant's text meets a
// process that no other variant's text has been in. CUDA's headers, which are nobody's, are precompiled here: a precompiled
// header is good for the process that made it and for its forks. Started by a compiler with its command socket as descriptor 3
// and a folder of its own to start in; ends with it.

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>

#include "embedded/cuda_prelude.hpp"
#include "evaluation/compile/nvrtc/confinement.hpp"
#include "evaluation/compile/nvrtc/library.hpp"
#include "evaluation/compile/nvrtc/nvrtc.capnp.h"
#include "evaluation/sandbox/framing.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr int command_socket = 3;
constexpr rlim_t compilation_memory = 4ULL << 30U;  // beyond what the library has reserved: gigabytes, on large machines
constexpr rlim_t file_bytes = 256U << 20U;
constexpr std::size_t max_header_sets = 16;
constexpr std::uintptr_t largest_owned = 256U << 20U;
const std::vector<std::string> use_precompiled = {"--pch", "--pch-dir=."};
constexpr auto prelude_file = "hone_prelude.cuh";

std::vector<std::string> texts(const capnp::List<capnp::Text>::Reader& list) {
  std::vector<std::string> all;
  for (const auto text : list) all.emplace_back(text.cStr());
  return all;
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

void own_pages(std::uintptr_t begin, std::uintptr_t end) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  if (end > begin && end - begin <= largest_owned) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

// Takes copies of the pages that this process shares with its parent, the heap and every library's data, before it has anything to
// do: page by page, in the midst of compiling, that takes a quarter of the time.
void own_memory(const void* heap) {
  own_pages(reinterpret_cast<std::uintptr_t>(heap), reinterpret_cast<std::uintptr_t>(sbrk(0)));
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void*) {
        for (unsigned i = 0; i < library->dlpi_phnum; ++i) {
          const auto& segment = library->dlpi_phdr[i];
          const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0) own_pages(begin, begin + segment.p_memsz);
        }
        return 0;
      },
      nullptr);
}

// Bytes of address space that this process has.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

class server {
 public:
  // The first compilation loads what the library loads late: once confined, it could not.
  server() {
    std::ofstream(prelude_file) << embedded::cuda_prelude;
    if (const auto first = nvrtc_.compile("extern \"C\" __global__ void nothing() {}\n", {"-arch=sm_80"}, {}); !first.compiled) throw std::runtime_error("NVRTC does not compile: " + first.log);
    reserved_ = address_space();
  }

  void greet() const {
    record_builder<schema::NvrtcGreeting> greeting;
    greeting->setMajor(nvrtc_.major());
    greeting->setMinor(nvrtc_.minor());
    auto folders = greeting->initIncludeFolders(static_cast<unsigned>(nvrtc_.include_folders().size()));
    for (unsigned i = 0; i < folders.size(); ++i) folders.set(i, nvrtc_.include_folders()[i]);
    send_message(command_socket, greeting.finish().bytes());
  }
  void confine() const {
    std::vector<std::string> readable = nvrtc_.include_folders();
    readable.push_back(nvrtc_.folder());
    confine_files(readable, ".");
  }
  [[noreturn]] void serve() {
    while (true) {
      fork_ready();
      const auto job = record<schema::NvrtcJob>::from_bytes(std::move(receive_message(command_socket)->bytes));
      // A precompiled header is known to those who are forked behind it.
      if (precompile(*job)) {
        end_ready();
        fork_ready();
      }
      send_message(command_socket, answer_of_ready(job).bytes());
      end_ready();  // behind the answer: taking a process apart takes milliseconds
    }
  }

 private:
  std::vector<std::string> options_of(const schema::NvrtcJob::Reader& job) const {
    std::vector<std::string> options = texts(job.getOptions());
    for (const std::string& folder : nvrtc_.include_folders()) options.push_back("-I" + folder);
    options.push_back("-I.");
    return options;
  }

  // Everything up to here is the same for all blocks with these headers: it is what gets precompiled.
  static std::string head_of(const schema::NvrtcJob::Reader& job) {
    std::string head = std::string("#include \"") + prelude_file + "\"\n";
    for (const auto header : job.getHeaders()) head += "#include <" + std::string(header.cStr()) + ">\n";
    return head + "#pragma hdrstop\n";
  }
  static std::string key_of(const std::string& head, const std::vector<std::string>& options) {
    std::string key = head;
    for (const std::string& option : options) key += option + "\n";
    return key;
  }

  // Makes the precompiled header, where it is worth it: CUDA's headers take a second, the prelude a few milliseconds. Whether
  // that was news.
  bool precompile(const schema::NvrtcJob::Reader& job) {
    if (job.getHeaders().size() == 0) return false;
    const std::string head = head_of(job);
    std::vector<std::string> options = options_of(job);
    const std::string key = key_of(head, options);
    if (precompiled_.contains(key) || precompiled_.size() == max_header_sets) return false;
    options.insert(options.end(), use_precompiled.begin(), use_precompiled.end());
    return precompiled_[key] = nvrtc_.compile(head + "static void hone_nothing() {}\n", options, {}).compiled;
  }

  // One process is always ready for the next block.
  void fork_ready() {
    if (ready_ > 0) return;
    auto [ours, theirs] = socket_pair();
    ready_ = fork();
    if (ready_ == 0) {
      ours.reset();
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(command_socket);
      own_memory(heap_);
      compile_and_exit(theirs.get());
    }
    socket_ = std::move(ours);
  }

  void end_ready() {
    if (ready_ <= 0) return;
    kill(ready_, SIGKILL);
    waitpid(ready_, nullptr, 0);
    ready_ = -1;
    socket_.reset();
  }

  record<schema::NvrtcResult> answer_of_ready(const record<schema::NvrtcJob>& job) {
    if (ready_ <= 0) return stopped("there is no room for another process");
    try {
      send_message(socket_.get(), job.bytes());
      auto answer = receive_message(socket_.get(), clock::now() + std::chrono::milliseconds(job->getTimeMs()));
      if (answer) return record<schema::NvrtcResult>::from_bytes(std::move(answer->bytes));
      return stopped("the compiler was stopped at its deadline");
    } catch (const connection_lost&) {
      int status = 0;
      waitpid(ready_, &status, 0);
      ready_ = -1;
      const bool is_out_of_time = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
      return stopped(is_out_of_time ? "the compiler was stopped at its deadline" : "the compiler ended (" + describe_status(status) + "): the block is nested too deeply, or too large");
    }
  }

  nvrtc_library::result compile(const schema::NvrtcJob::Reader& job) const {
    const std::string head = head_of(job);
    std::vector<std::string> options = options_of(job);
    const auto precompiled = precompiled_.find(key_of(head, options));
    if (precompiled != precompiled_.end() && precompiled->second) options.insert(options.end(), use_precompiled.begin(), use_precompiled.end());
    const std::string source = head + job.getBlock().cStr();
    const std::vector<std::string> kernels = texts(job.getKernels());
    if (job.getHeaders().size() == 0) {
      // Without textures and the runtime's own functions, which hardly any block uses, a tenth is saved.
      std::vector<std::string> fewer = options;
      fewer.emplace_back("--minimal");
      if (auto made = nvrtc_.compile(source, fewer, kernels); made.compiled) return made;
    }
    return nvrtc_.compile(source, options, kernels);
  }

  // In the forked process: one block, and the end.
  [[noreturn]] void compile_and_exit(int socket) const {
    try {
      const auto job = record<schema::NvrtcJob>::from_bytes(std::move(receive_message(socket)->bytes));
      const rlim_t most = reserved_ + compilation_memory;
      const rlimit memory{most, most};
      const rlimit file{file_bytes, file_bytes};
      const rlim_t seconds = job->getTimeMs() / 1000 + 1;
      const rlimit time{seconds, seconds};
      if (setrlimit(RLIMIT_AS, &memory) != 0 || setrlimit(RLIMIT_FSIZE, &file) != 0 || setrlimit(RLIMIT_CPU, &time) != 0) _exit(1);
      install_filter(toolchain_filter());
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

  const void* heap_ = sbrk(0);  // where it began to grow
  nvrtc_library nvrtc_;
  std::map<std::string, bool> precompiled_;  // by head and options
  pid_t ready_ = -1;
  unique_fd socket_;  // to it
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
