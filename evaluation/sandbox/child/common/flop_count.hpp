#pragma once

#include <cstdint>
#include <functional>

namespace hone {

// Runs `run` and counts the floating-point operations of the matrix products, convolutions and
// attention operators that it calls on this thread: two for each product that is added up. The
// counts follow from tensor sizes alone. Elementwise work, reductions and recurrent layers of cuDNN
// are not counted. Returns 0 if there was nothing to count. Exceptions of `run` pass through.
std::uint64_t count_flops(const std::function<void()>& run);

}  // namespace hone
