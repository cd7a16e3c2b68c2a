#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/timing.hpp"

namespace hone {

// What one call took, on the device's clock and on the wall's, in nanoseconds.
struct call_time {
  double device_ns = 0;
  double wall_ns = 0;
};

// One of two programs that are compared on a device whose clock tells single calls apart.
class clocked_program {
 public:
  virtual ~clocked_program() = default;
  // New parameters, prepared at once, untimed.
  virtual void take_parameters(std::uint64_t seed) = 0;
  // So many calls on fresh contents, each clocked by itself.
  virtual std::vector<call_time> sample(std::size_t calls) = 0;
  virtual std::size_t most_calls() const = 0;  // that a sample may have
};

// The paired protocol of evaluation.md section 3 for such devices: warm-up by time; rounds in which reference and candidate make a sample
// each, in an order drawn anew; the datum is the ratio of a round. `check` looks at one call of the candidate's last sample, whichever it
// likes, and throws timing_failure; it is called behind samples that nobody can foresee and behind every suspiciously fast one. What
// `sample` throws as timing_failure ends the measurement. Ratio, medians, rounds and a failure by statistics are filled in; the rest of
// case_timing is the caller's.
case_timing time_pair(clocked_program& candidate, clocked_program& reference, const timing_rules& rules, random_stream& random, const std::function<void()>& check);

// The rules for a GPU: evaluation.md section 3, point 6.
timing_rules gpu_timing_rules();

// Three clocks on the same train of calls, and the time that was scored for one of them: whether they tell the same story. `span_ns` 0:
// not known. Nothing: they do.
struct three_clocks {
  double device_ns = 0;  // of the whole train, as the following
  double wall_ns = 0;
  double span_ns = 0;
  std::uint64_t calls = 1;
};
std::optional<program_failure> find_disagreement(const three_clocks& train, double scored_call_ns);

}  // namespace hone
