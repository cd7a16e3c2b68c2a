#pragma once

#include "evaluation/sandbox/child/cpu/kernel_queue.hpp"

namespace hone {

// Loads the shared object that confine() has admitted, sends its kernels' facts as
// schema::LoadedKernels, and runs what the session asks for until its socket closes.
[[noreturn]] void serve_kernels(int socket, kernel_queue& queue);

}  // namespace hone
