#pragma once

#include "cuda/cuda_driver.hpp"

namespace hone {

// Memory that the driver takes for the context of a GPU's process, outside of the arena. The
// calling thread's context is meant.

// Limits the stack of a thread, the heap of kernels and the buffer of printf(). Must be called
// before any program is run, because the driver does not change the last two once a kernel has used
// them. Throws std::runtime_error if the limits do not hold.
void limit_context(const cuda_driver& driver);

// Returns the local memory of the kernels that have run. The driver enlarges it for a kernel with a
// large stack, for all threads that the GPU can hold, and keeps it: unloading the kernel frees
// nothing. Waits until the device is idle if there is something to return.
void return_local_memory(const cuda_driver& driver);

}  // namespace hone
