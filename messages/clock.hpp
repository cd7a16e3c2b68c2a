#pragma once

#include <chrono>
#include <cstdint>

namespace hone {

// Returns the wall-clock time since the Unix epoch in microseconds. Records store such times.
inline std::uint64_t unix_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}
// Returns the wall-clock time since the Unix epoch in milliseconds. Records store such times.
inline std::uint64_t unix_ms() { return unix_us() / 1000; }

}  // namespace hone
