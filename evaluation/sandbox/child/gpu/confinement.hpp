#pragma once

namespace hone {

// From here on this process, and every thread that the caller starts, reads files and talks to the
// GPU; it has 8 GiB of host memory beyond what it has now. Throws std::runtime_error.
void confine_gpu_process();

}  // namespace hone
