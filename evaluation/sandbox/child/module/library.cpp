// libhone-module.so: turns a Python interpreter that has loaded torch into a warm process which
// forks confined sessions, as hone-sandbox does for TorchScript programs.

#include <ATen/Parallel.h>

#include "evaluation/sandbox/child/common/zygote_server.hpp"
#include "evaluation/sandbox/child/module/module_session.hpp"

extern "C" void hone_serve_modules(const hone::module_hooks* hooks) {
  at::set_num_threads(1);  // a fork of a process with worker threads hangs
  hone::serve_zygote({
      .serve_session =
          [hooks](int socket, int arena, std::uint64_t address_space) {
            hone::serve_module_session(*hooks, socket, arena, address_space);
          },
      .make_trivial_call = [hooks] { return hone::trivial_module_call(*hooks); },
  });
}
