#pragma once

#include "evaluation/sandbox/child/cpu/kernel_queue.hpp"

namespace hone {

// Loads the shared object that confine() has admitted, sends its kernels' facts as
// schema::LoadedKernels, and runs the queue whenever the session asks by a byte, which is sent
// back.
[[noreturn]] void serve_kernels(int socket, kernel_queue& queue);

}  // namespace hone
