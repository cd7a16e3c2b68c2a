#pragma once

#include "evaluation/sandbox/child/cpu/kernel_queue.hpp"

namespace hone {

// Loads the shared object that confine() has admitted, sends its kernels' facts as
// schema::LoadedKernels, and stops itself. Whenever the session lets it go on, it runs the queue
// and stops again.
[[noreturn]] void serve_kernels(int socket, kernel_queue& queue);

}  // namespace hone
