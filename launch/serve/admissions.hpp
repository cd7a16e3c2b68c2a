#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "launch/serve/service_limits.hpp"

namespace hone {

// Counts the programs of clients. May be used by several threads.
class admissions {
 public:
  explicit admissions(service_limits limits) : limits_(limits) {}
  // Throws bad_request (429) if so many more would be too many.
  void admit(const std::string& client, std::size_t programs);
  void release(const std::string& client, std::size_t programs);
  std::size_t waiting() const;

 private:
  using clock = std::chrono::steady_clock;
  struct account {
    std::size_t waiting = 0;
    double allowance = 0;  // programs that the rate admits at `counted_at`
    clock::time_point counted_at = clock::now();
  };

  service_limits limits_;
  mutable std::mutex lock_;  // guards the rest
  std::size_t waiting_ = 0;
  std::map<std::string, account> clients_;
};

}  // namespace hone
