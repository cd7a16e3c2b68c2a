#pragma once

#include <cstddef>
#include <cstdint>

namespace hone {

// Limits on the kernels of a variant, beyond those of the device. The compilers and the sandbox
// check them.

// Names of kernels that a host program may launch. `k<1>` and `k<01>` are two names.
inline constexpr std::size_t max_launched_kernels = 256;

// Local memory of a thread on a GPU, in bytes: its stack frames and spilled registers. The driver
// reserves it for all threads that the GPU can hold at once, in each process that launches the
// kernel: 2.1 GB on an H100 for 8 KiB a thread. The arena does not include it.
inline constexpr std::uint64_t max_local_bytes = 8U << 10U;

// Variables of a cubin in GPU memory (`__device__`, `__constant__`), in bytes. They lie in each
// process that loads the cubin, outside of the arena.
inline constexpr std::uint64_t max_variable_bytes = 1U << 30U;

}  // namespace hone
