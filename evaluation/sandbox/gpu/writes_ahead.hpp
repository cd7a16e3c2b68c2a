#pragma once

#include <algorithm>
#include <cmath>

namespace hone {

constexpr double most_ahead_ns = 0.4e6;

// How often the device writes a buffer before a clocked call, so that the host is ahead of it: half as long again as the host took for the last calls,
// `most_ahead_ns` at most. `host_ns` for a call, `write_ns` for one writing; either may be unknown, which is 0.
inline int writes_ahead(double host_ns, double write_ns) {
  constexpr double reserve = 1.5;
  if (write_ns <= 0) return 1;
  return std::max(1, static_cast<int>(std::ceil(std::min(reserve * host_ns, most_ahead_ns) / write_ns)));
}

// What the host takes for a call, as far as the next should reckon with it: the most of late, of which a tenth is forgotten with every call.
inline double host_ns_to_expect(double before, double seen) {
  constexpr double fading = 0.9;
  return std::max(std::min(seen, most_ahead_ns), fading * before);
}

}  // namespace hone
