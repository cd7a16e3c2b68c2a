// hone-gpu-sandbox: a long-lived process with LibTorch and a context on one GPU, which runs one
// program after another for the node that started it. Its command socket is descriptor 3;
// CUDA_VISIBLE_DEVICES names its GPU.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "evaluation/sandbox/child/common/replies.hpp"
#include "evaluation/sandbox/child/gpu/session.hpp"
#include "process/framing.hpp"

int main(int argc, char** /*argv*/) {
  constexpr int command_socket = 3;
  if (argc != 1 || fcntl(command_socket, F_GETFD) < 0) {
    std::fputs("hone-gpu-sandbox runs programs for hone; it is not started by hand.\n", stderr);
    return 2;
  }
  try {
    hone::serve_gpu_sessions(command_socket);
  } catch (const hone::connection_lost&) {
    _exit(0);
  } catch (const std::exception& e) {
    try {
      hone::send_failure(command_socket, e, true);
    } catch (const std::exception&) {
    }
    _exit(1);
  }
}
