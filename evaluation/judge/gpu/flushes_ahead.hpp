#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hone {

inline constexpr double most_ahead_ns = 0.4e6;
inline constexpr std::uint32_t most_flushes = 8;  // however short one of them seems

// How often a device flushes its L2 cache before a clocked call, so that the host is ahead of it:
// half as long again as the host takes for a call, `most_ahead_ns` and `most_flushes` at most, once
// at least. Once is enough for a call of a few launches; one of many would else be clocked by what
// its host does beside it (doc/decisions/012). `host_ns` for a call, `flush_ns` for one flush;
// either may be unknown, which is 0.
inline std::uint32_t flushes_ahead(double host_ns, double flush_ns) {
  constexpr double reserve = 1.5;
  if (flush_ns <= 0) return 1;
  const double most = std::min<double>(std::floor(most_ahead_ns / flush_ns), most_flushes);
  return static_cast<std::uint32_t>(
      std::max(1.0, std::min(std::ceil(reserve * host_ns / flush_ns), most)));
}

// What the host takes for a program's calls, as far as the next should reckon with it: what two
// calls in a row have taken, the most of late. One that loads code or is held up does not count; of
// the most a tenth is forgotten with every call.
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

// What both programs of a round have before their calls: what the slower host of the two needs. How
// long a flush takes, a candidate could forge: the reference's tell.
inline std::uint32_t flushes_of_round(const host_time& candidate, const host_time& reference,
                                      double reference_flush_ns) {
  return flushes_ahead(std::max(candidate.ns(), reference.ns()), reference_flush_ns);
}

}  // namespace hone
