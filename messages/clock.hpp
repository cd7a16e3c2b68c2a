#pragma once

#include <chrono>
#include <cstdint>

namespace hone {

// The time of day, as records store it.
inline std::uint64_t unix_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}
inline std::uint64_t unix_ms() { return unix_us() / 1000; }

}  // namespace hone
