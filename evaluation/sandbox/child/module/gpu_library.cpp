// libhone-gpu-module.so: turns a Python interpreter that has loaded torch and made a context on its
// GPU into the confined process of one Python module.

#include <unistd.h>

#include <exception>

#include "evaluation/sandbox/child/common/replies.hpp"
#include "evaluation/sandbox/child/module/gpu_module_session.hpp"
#include "process/framing.hpp"

extern "C" void hone_serve_modules(const hone::module_hooks* hooks) {
  constexpr int command_socket = 3;
  try {
    hone::serve_gpu_module(*hooks, command_socket);
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
