#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Conversion of a preprocessed cuda block to C++ for g++. The text is hostile: all
// functions take time and memory linear in its length. They throw block_refused.

// Returns the part of preprocessed text that begins with the block's first line. The text before it
// is cuda_on_cpu(). Macros may expand it to a MiB, so that what reads it is done soon.
std::string_view block_part(std::string_view preprocessed);

// Replaces kernels and shared memory, which g++ does not have. Removes `__global__`. Turns
// `__shared__ T x[N];` into a thread-local static (all fibers of a block share a thread, and the
// sandbox can find and poison it), and `extern __shared__ T x[];` into a pointer to the launch's
// dynamic shared memory. Removes pragmas, and line markers other than the block's own. Lines keep
// their numbers.
std::string rewrite_block(std::string_view preprocessed);

// Returns the definition of the module that the sandbox loads, with an entry per kernel.
std::string launch_table(const std::vector<std::string>& kernels);

}  // namespace hone
