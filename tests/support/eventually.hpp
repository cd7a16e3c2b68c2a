#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace hone::testing_support {

// Waits until the condition holds and returns true, or returns false after `limit`. Calls the
// condition every 2 ms.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace hone::testing_support
