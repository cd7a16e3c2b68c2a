#pragma once

namespace hone {

// Confines this process, and every thread that the caller starts later, to reading files, writing
// the driver's cache and talking to the GPU, with 8 GiB of host memory beyond its present memory.
// The cache is the folder CUDA_CACHE_PATH, which no other process uses; where the kernel cannot
// limit writing to a folder, the process writes nothing. Throws std::runtime_error.
void confine_gpu_process();

}  // namespace hone
