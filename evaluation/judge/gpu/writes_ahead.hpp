#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hone {

inline constexpr double most_ahead_ns = 0.4e6;
inline constexpr std::uint32_t most_writes = 8;  // however short one of them seems

// How often a device writes the buffer that empties its L2 cache before a clocked call, so that the host is ahead of it: half as long again as the host takes for a call,
// `most_ahead_ns` and `most_writes` at most, once at least. Once is enough for a call of a few launches; one of many would else be clocked by what its host does beside it
// (doc/decisions/012). `host_ns` for a call, `write_ns` for one writing; either may be unknown, which is 0.
inline std::uint32_t writes_ahead(double host_ns, double write_ns) {
  constexpr double reserve = 1.5;
  if (write_ns <= 0) return 1;
  const double most = std::min<double>(std::floor(most_ahead_ns / write_ns), most_writes);
  return static_cast<std::uint32_t>(std::max(1.0, std::min(std::ceil(reserve * host_ns / write_ns), most)));
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
