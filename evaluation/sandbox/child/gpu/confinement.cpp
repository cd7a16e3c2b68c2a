#include "evaluation/sandbox/child/gpu/confinement.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "process/child_process.hpp"
#include "process/write_fence.hpp"

namespace hone {
namespace {

// Limits the host memory that the process may take beyond the memory that it has when it is ready.
// The limit is on private writable memory, because CUDA reserves terabytes of address space.
void limit_memory() {
  constexpr rlim_t for_programs = 8ULL << 30U;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmData:")) continue;
    const rlim_t most =
        std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024 + for_programs;
    const rlimit limit{most, most};
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
      throw std::runtime_error("cannot limit the process's memory");
    return;
  }
  throw std::runtime_error("cannot tell how much memory the process has");
}

}  // namespace

void confine_gpu_process() {
  limit_memory();
  if (prctl(PR_SET_DUMPABLE, 0) != 0) throw std::runtime_error("cannot forbid dumps");
  const char* cache = std::getenv("CUDA_CACHE_PATH");
  const bool is_fenced = cache != nullptr && confine_writing(cache);
  install_filter(is_fenced ? fenced_writer_filter() : reader_filter());
}

}  // namespace hone
