#pragma once

#include <cstddef>
#include <vector>

#include "evaluation/judge/paired_timing.hpp"

namespace hone {

// A call of at least this length is a run by itself. It does not matter to such a call that another
// process used the device just before it.
inline constexpr double long_call_ns = 1e6;
// A call of at least this length is long enough that few are made: nothing around it matters.
inline constexpr double very_long_call_ns = 20e6;
// A call of at least this length is made no oftener than it must be.
inline constexpr double hardly_sampled_call_ns = 100e6;
// The same as long_call_ns, if the host launches for most of the call: the host's caches matter for
// longer.
inline constexpr double long_launch_bound_call_ns = 20e6;

// A side on a device whose clock times single calls. A run is a sample of several calls, and a
// batch is one run. The first call of a sample finds other caches and clocks than the calls after
// it, because another process has used the device. It does not count, unless calls are long. Time
// of a candidate's first call that this does not explain is spread over all calls of the sample:
// the first call must not do the work of the others, nor disturb the other side.
class sampled_side : public timed_side {
 public:
  enum class role { candidate, reference };
  // `long_ns`: the length from which a call is a run by itself.
  explicit sampled_side(role plays, double long_ns = long_call_ns)
      : role_(plays), long_ns_(long_ns) {}

  // Lets two sides sample alike: with the same number of calls and the first of them treated in the
  // same way, if the lengths of their calls are within a factor of two. Neither side may be moved
  // afterwards.
  static void pair_up(sampled_side& a, sampled_side& b);

  // Makes `calls` calls on fresh contents. Returns the nanoseconds of each by the device's clock.
  virtual std::vector<double> sample(std::size_t calls) = 0;
  // Returns the largest number of calls of one sample.
  virtual std::size_t max_calls() const = 0;

  void end_warm_up() override;
  void recalibrate() override;
  double min_batch_ns() const override;
  run_time run(double target_ns) override;

 protected:
  bool is_reference() const { return role_ == role::reference; }

 private:
  run_time clock_calls();
  bool is_like_other() const;
  bool is_long() const;
  double pace_ns() const;
  std::size_t lead_in_calls() const;  // first calls of a sample, which do not count
  std::size_t min_calls() const;
  double charged_call_ns(const std::vector<double>& times) const;

  role role_;
  double long_ns_;
  const sampled_side* other_ = nullptr;  // of the pair
  bool is_warm_ = false;
  std::size_t clockings_ = 0;  // of clock_calls()
  double call_ns_ = 0;         // of a call, by the device's clock
  double whole_call_ns_ = 0;   // wall time, with new contents, cache flushes and waiting
};

}  // namespace hone
