// hone-nvrtc: a warm process that has NVRTC loaded and forks one compilation after another, so that
// a variant's text is compiled in a process that has seen no other variant's text. CUDA's headers
// are not hostile and are precompiled here. A cuda_compiler starts it in a dedicated folder, with
// its command socket as descriptor 3, and it ends when that socket closes.

#include <fcntl.h>

#include <cstdio>
#include <exception>
#include <string>

#include "evaluation/compile/cuda/nvrtc/compile_server.hpp"
#include "evaluation/compile/cuda/nvrtc/memory.hpp"
#include "process/framing.hpp"

namespace {

constexpr int command_socket = 3;

void report(const std::string& problem) {
  hone::record_builder<hone::schema::NvrtcGreeting> greeting;
  greeting->setProblem(problem);
  greeting->initIncludeFolders(0);
  hone::send_message(command_socket, greeting.finish().bytes());
}

}  // namespace

int main(int argc, char** /*argv*/) {
  if (argc != 1 || fcntl(command_socket, F_GETFD) < 0) {
    std::fputs("hone-nvrtc compiles for hone; it is not started by hand.\n", stderr);
    return 2;
  }
  try {
    try {
      hone::keep_memory();
      hone::compile_server server(command_socket);
      server.read_headers();
      server.greet();
      server.serve();
    } catch (const hone::connection_lost&) {
      return 0;
    } catch (const std::exception& e) {
      report(e.what());
      return 1;
    }
  } catch (const std::exception&) {
    return 1;
  }
}
