#pragma once

namespace hone {

// Confines this process, and every thread that the caller starts later, to reading files and
// talking to the GPU, with 8 GiB of host memory beyond its present memory. Throws
// std::runtime_error.
void confine_gpu_process();

}  // namespace hone
