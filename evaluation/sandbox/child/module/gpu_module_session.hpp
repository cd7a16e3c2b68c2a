#pragma once

#include "evaluation/sandbox/child/module/module_hooks.hpp"

namespace hone {

// Serves the session of one Python module on a GPU, on its socket, until the socket closes. The
// process is confined before it receives a text. The runner has made the context of its GPU.
// Throws connection_lost, and other exceptions if the session cannot begin.
void serve_gpu_module(const module_hooks& hooks, int socket);

}  // namespace hone
