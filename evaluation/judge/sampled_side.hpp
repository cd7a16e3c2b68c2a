#pragma once

#include <cstddef>
#include <vector>

#include "evaluation/judge/paired_timing.hpp"

namespace hone {

// A call of at least this length is a run by itself. It does not matter to such a call that another
// process used the device just before it.
inline constexpr double long_call_ns = 1e6;

// A side on a device whose clock times single calls. A run is a sample of several calls, and a
// batch is one run. The first call of a sample finds other caches and clocks than the calls after
// it, because another process has used the device. It does not count, unless calls are long. Time
// of a candidate's first call that this does not explain is spread over all calls of the sample:
// the first call must not do the work of the others, nor disturb the other side.
class sampled_side : public timed_side {
 public:
  enum class role { candidate, reference };
  explicit sampled_side(role plays) : role_(plays) {}

  // Makes `calls` calls on fresh contents. Returns the nanoseconds of each by the device's clock.
  virtual std::vector<double> sample(std::size_t calls) = 0;
  // Returns the largest number of calls of one sample.
  virtual std::size_t max_calls() const = 0;

  void end_warm_up() override;
  void recalibrate() override { clock_calls(); }
  double least_batch_ns() const override;
  run_time run(double target_ns) override;

 protected:
  bool is_reference() const { return role_ == role::reference; }

 private:
  run_time clock_calls();
  std::size_t least_calls() const;
  double charged_call_ns(const std::vector<double>& times) const;

  role role_;
  bool is_warm_ = false;
  std::size_t lead_in_calls_ = 0;  // first calls of a sample, which do not count
  double call_ns_ = 0;             // of a call, by the device's clock
  double whole_call_ns_ = 0;       // wall time, with new contents, cache flushes and waiting
};

}  // namespace hone
