#pragma once

#include <cstdint>
#include <functional>

namespace hone {

// Floating-point operations of the matrix products and convolutions that `run` asks the library
// for, on this thread: two for each product that is added up. Elementwise work, reductions and
// recurrent layers of cuDNN are not counted; sizes alone decide. 0: there were none.
std::uint64_t count_flops(const std::function<void()>& run);

}  // namespace hone
