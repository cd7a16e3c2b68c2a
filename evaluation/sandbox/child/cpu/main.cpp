// hone-sandbox: a warm, single-threaded process that has LibTorch loaded and forks one confined
// session after another. A node starts it, with its command socket as descriptor 3, and it ends
// when that socket closes.

#include <ATen/Parallel.h>
#include <fcntl.h>

#include <cstdio>
#include <exception>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "evaluation/sandbox/child/common/zygote_server.hpp"
#include "evaluation/sandbox/child/cpu/session.hpp"

int main(int argc, char** /*argv*/) {
  if (argc != 1 || fcntl(hone::command_socket, F_GETFD) < 0) {
    std::fputs("hone-sandbox runs programs for hone; it is not started by hand.\n", stderr);
    return 2;
  }
  try {
    // A fork of a process with worker threads hangs.
    at::set_num_threads(1);
    hone::torchscript_program::warm_up();
    hone::serve_zygote({.serve_session = hone::serve_session});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hone-sandbox: %s\n", e.what());
    return 1;
  }
}
