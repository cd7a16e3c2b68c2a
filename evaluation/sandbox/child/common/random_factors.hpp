#pragma once

#include <cstdint>

namespace at {
class Tensor;
}
namespace c10 {
struct Device;
}

namespace hone {

// The random numbers of rounding noise. Functions are confined to one thread.

// Draws random factors that random_factors() takes slices of: to draw them anew for each result
// would take several times as long as to use them. Has no effect if it has been called for this
// type of device. The memory is never freed and must not belong to an arena.
void make_factors(c10::Device on);
// Seeds the random factors of noise.
void seed_factors(std::uint64_t seed);
// Returns numbers of random sign from 1/2 to 3/2, of the shape and the real type of `like`. Their
// sizes differ, so that two errors of equal size do not cancel in every run. Read-only.
at::Tensor random_factors(const at::Tensor& like);
// Returns the most factors that random_factors() takes from those of make_factors().
std::int64_t max_prepared_factors(c10::Device on);

}  // namespace hone
