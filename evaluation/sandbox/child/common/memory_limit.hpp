#pragma once

#include <cstdint>

namespace hone {

// Limits the host memory that this process may take beyond the memory that it has now. The limit is
// on private writable memory, because CUDA reserves terabytes of address space. Throws
// std::runtime_error.
void limit_private_memory(std::uint64_t bytes);

}  // namespace hone
