#include "evaluation/sandbox/child/gpu/confinement.hpp"

#include <sys/prctl.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "evaluation/sandbox/child/common/memory_limit.hpp"
#include "process/child_process.hpp"
#include "process/write_fence.hpp"

namespace hone {
namespace {

// Host memory that programs may take in addition to what the process has when it is ready.
constexpr std::uint64_t bytes_for_programs = 8ULL << 30U;

}  // namespace

void confine_gpu_process() {
  limit_private_memory(bytes_for_programs);
  if (prctl(PR_SET_DUMPABLE, 0) != 0) throw std::runtime_error("cannot forbid dumps");
  const char* cache = std::getenv("CUDA_CACHE_PATH");
  const bool is_fenced = cache != nullptr && confine_writing(cache);
  install_filter(is_fenced ? fenced_writer_filter() : reader_filter());
}

}  // namespace hone
