#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hone {

// The head start of a timed call is the time for which the device flushes its L2 cache before the
// call, so that the host is ahead of the device when the call begins.

inline constexpr double max_head_start_ns = 0.4e6;
inline constexpr std::uint32_t max_flushes = 8;  // even if one flush seems very short

// Returns the number of flushes before a timed call. Together they last 1.5 times the host's time
// for a call, within `max_head_start_ns` and `max_flushes`, and there is at least one. One flush is
// enough for a call of a few launches. Without more, the time of a call of many launches would
// depend on other work of its host. `host_ns`: the host's time for a call;
// `flush_ns`: the time of one flush; either may be 0, which means unknown.
inline std::uint32_t flushes_ahead(double host_ns, double flush_ns) {
  constexpr double reserve = 1.5;
  if (flush_ns <= 0) return 1;
  const double most = std::min<double>(std::floor(max_head_start_ns / flush_ns), max_flushes);
  return static_cast<std::uint32_t>(
      std::max(1.0, std::min(std::ceil(reserve * host_ns / flush_ns), most)));
}

// Estimates the host's time for a call of a program: the longest recent time that two calls in a
// row have taken. A single call that loads code or is interrupted does not count, and the estimate
// decays by a tenth with every call.
class host_time {
 public:
  double ns() const { return most_; }
  void see(double ns) {
    constexpr double decay = 0.9;
    most_ = std::max(std::min({ns, last_, max_head_start_ns}), decay * most_);
    last_ = ns;
  }

 private:
  double last_ = 0;
  double most_ = 0;
};

// Returns the number of flushes before each call of both programs in a round: the number that the
// slower host of the two needs. A candidate could forge the time of its flushes, so the time of the
// reference's flushes counts.
inline std::uint32_t flushes_of_round(const host_time& candidate, const host_time& reference,
                                      double reference_flush_ns) {
  return flushes_ahead(std::max(candidate.ns(), reference.ns()), reference_flush_ns);
}

}  // namespace hone
