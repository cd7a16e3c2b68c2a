// hone-nvrtc: a warm process that has NVRTC loaded and forks one compilation after another, so that a variant's text meets a
// process that no other variant's text has been in. CUDA's headers, which are nobody's, are precompiled here: a precompiled
// header is good for the process that made it and for its forks. Started by a compiler with its command socket as descriptor 3
// and a folder of its own to start in; ends with it.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
constexpr rlim_t compilation_memory = 4ULL << 30U;
constexpr rlim_t file_bytes = 256U << 20U;
constexpr std::size_t max_header_sets = 16;
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

class server {
 public:
  // The first compilation loads what the library loads late: once confined, it could not.
  server() {
    std::ofstream(prelude_file) << embedded::cuda_prelude;
    if (const auto first = nvrtc_.compile("extern \"C\" __global__ void nothing() {}\n", {"-arch=sm_80"}, {}); !first.compiled) throw std::runtime_error("NVRTC does not compile: " + first.log);
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
      const auto job = record<schema::NvrtcJob>::from_bytes(std::move(receive_message(command_socket)->bytes));
      send_message(command_socket, run(*job).bytes());
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

  // Makes the precompiled header, where it is worth it: CUDA's headers take a second, the prelude a few milliseconds.
  bool precompile(const std::string& head, std::vector<std::string> options, bool has_headers) {
    if (!has_headers) return false;
    std::string key = head;
    for (const std::string& option : options) key += option + "\n";
    if (const auto known = precompiled_.find(key); known != precompiled_.end()) return known->second;
    if (precompiled_.size() == max_header_sets) return false;
    options.insert(options.end(), {"--pch", "--pch-dir=."});
    return precompiled_[key] = nvrtc_.compile(head + "static void hone_nothing() {}\n", options, {}).compiled;
  }

  record<schema::NvrtcResult> run(const schema::NvrtcJob::Reader& job) {
    const auto until = clock::now() + std::chrono::milliseconds(job.getTimeMs());
    std::vector<std::string> options = options_of(job);
    const std::string head = head_of(job);
    if (precompile(head, options, job.getHeaders().size() > 0)) options.insert(options.end(), {"--pch", "--pch-dir=."});
    auto [ours, theirs] = socket_pair();
    const pid_t pid = fork();
    if (pid < 0) return stopped("there is no room for another process");
    if (pid == 0) {
      ours.reset();
      compile_and_exit(head + job.getBlock().cStr(), options, texts(job.getKernels()), theirs.get(), job.getTimeMs());
    }
    theirs.reset();
    std::optional<received_message> answer;
    bool is_gone = false;
    try {
      answer = receive_message(ours.get(), until);
    } catch (const connection_lost&) {
      is_gone = true;
    }
    if (!is_gone) kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    if (answer) return record<schema::NvrtcResult>::from_bytes(std::move(answer->bytes));
    return stopped(is_gone && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) ? "the compiler ended (" + describe_status(status) + "): the block is nested too deeply, or too large" : "the compiler was stopped at its deadline");
  }

  [[noreturn]] void compile_and_exit(const std::string& source, const std::vector<std::string>& options, const std::vector<std::string>& kernels, int socket, std::uint32_t time_ms) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(command_socket);
    const rlimit memory{compilation_memory, compilation_memory};
    const rlimit file{file_bytes, file_bytes};
    const rlimit seconds{time_ms / 1000 + 1, time_ms / 1000 + 1};
    if (setrlimit(RLIMIT_AS, &memory) != 0 || setrlimit(RLIMIT_FSIZE, &file) != 0 || setrlimit(RLIMIT_CPU, &seconds) != 0) _exit(1);
    try {
      confine_calls();
      send_message(socket, to_record(nvrtc_.compile(source, options, kernels)).bytes());
    } catch (const std::exception& e) {
      try {
        send_message(socket, stopped(e.what()).bytes());
      } catch (const std::exception&) {
        _exit(1);
      }
    }
    _exit(0);  // leaves the precompiled headers' files to the process that made them
  }

  nvrtc_library nvrtc_;
  std::map<std::string, bool> precompiled_;  // by head and options
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
