#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Turns a preprocessed cuda block into C++ for g++. The text is hostile. Functions throw
// block_refused.

// Returns the part of preprocessed text that begins with the block's first line. Everything before it
// is cuda_on_cpu.cuh.
std::string_view block_part(std::string_view preprocessed);

// g++ knows neither kernels nor shared memory. Removes `__global__`. Turns `__shared__ T x[N];` into a
// thread-local static (all fibers of a block share a thread, and the sandbox can find and poison it),
// and `extern __shared__ T x[];` into a pointer to the launch's dynamic part. Removes pragmas, and line
// markers other than the block's own. Lines keep their numbers.
std::string rewrite_block(std::string_view preprocessed);

// Returns the definition of the module that the sandbox loads, with an entry per kernel.
std::string launch_table(const std::vector<std::string>& kernels);

}  // namespace hone
