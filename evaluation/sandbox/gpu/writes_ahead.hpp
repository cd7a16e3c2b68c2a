#pragma once

#include <algorithm>
#include <cmath>

#include "evaluation/sandbox/arena_layout.hpp"

namespace hone {

inline constexpr double most_ahead_ns = 0.4e6;

// How often the device writes a buffer before a clocked call, so that the host is ahead of it: half as long again as the host takes for a call, `most_ahead_ns` and `most_writes` at
// most, once at least. `host_ns` for a call, `write_ns` for one writing; either may be unknown, which is 0.
inline int writes_ahead(double host_ns, double write_ns) {
  constexpr double reserve = 1.5;
  if (write_ns <= 0) return 1;
  const double most = std::min<double>(std::floor(most_ahead_ns / write_ns), most_writes);
  return static_cast<int>(std::max(1.0, std::min(std::ceil(reserve * host_ns / write_ns), most)));
}

// What the host takes for a call, as far as the next should reckon with it: what two calls in a row have taken, the most of late. One that loads code or is held up
// does not count; of the most a tenth is forgotten with every call.
class host_time {
 public:
  double ns() const { return most_; }
  void see(double ns) {
    constexpr double fading = 0.9;
    most_ = std::max(std::min({ns, last_, most_ahead_ns}), fading * most_);
    last_ = ns;
  }

 private:
  double last_ = 0;
  double most_ = 0;
};

}  // namespace hone
