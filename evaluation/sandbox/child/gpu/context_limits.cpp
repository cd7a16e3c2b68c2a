#include "evaluation/sandbox/child/gpu/context_limits.hpp"

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace hone {
namespace {

// CUDA's defaults, apart from that of printf(), which is rounded up from a number of cores. No
// kernel of a candidate may use the heap (the compiler refuses those), so nobody needs a larger
// one.
constexpr std::size_t stack_bytes = 1U << 10U;  // of a thread whose kernel does not state its stack
constexpr std::size_t heap_bytes = 8U << 20U;
constexpr std::size_t printf_bytes = 8U << 20U;

}  // namespace

void limit_context(const cuda_driver& driver) {
  struct limit {
    CUlimit which;
    std::size_t bytes;
    const char* name;
  };
  constexpr std::array<limit, 3> limits = {
      {{CU_LIMIT_STACK_SIZE, stack_bytes, "the stack of a thread"},
       {CU_LIMIT_MALLOC_HEAP_SIZE, heap_bytes, "the heap of kernels"},
       {CU_LIMIT_PRINTF_FIFO_SIZE, printf_bytes, "the buffer of printf()"}}};
  for (const limit& one : limits) {
    // A refusal does not matter if the size is small anyway. The driver may round a size up.
    (void)driver.cuCtxSetLimit(one.which, one.bytes);
    std::size_t set = 0;
    driver.check(driver.cuCtxGetLimit(&set, one.which), "reading a limit of the context");
    if (set > 2 * one.bytes)
      throw std::runtime_error(std::string(one.name) + " has " + std::to_string(set) +
                               " bytes, and the driver does not limit it");
  }
}

void return_local_memory(const cuda_driver& driver) {
  std::size_t enlarged = 0;
  if (driver.cuCtxGetLimit(&enlarged, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS &&
      enlarged > stack_bytes)
    (void)driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_bytes);
}

}  // namespace hone
