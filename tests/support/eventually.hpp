#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace hone::testing_support {

// The factor by which limits are longer in a program with sanitizers.
#ifdef __SANITIZE_ADDRESS__
inline constexpr int slower_by = 5;
#else
inline constexpr int slower_by = 1;
#endif

// Waits until the condition holds and returns true, or returns false after `limit`, which is longer
// with sanitizers. Calls the condition every 2 ms.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + slower_by * limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace hone::testing_support
