#pragma once

#include <vector>

#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/timed_checks.hpp"
#include "evaluation/judge/timing.hpp"
#include "evaluation/sandbox/arena_layout.hpp"

namespace hone {

// One of two programs that are compared on a device whose clock tells single calls apart.
class clocked_program {
 public:
  virtual ~clocked_program() = default;
  // New parameters, prepared at once, untimed.
  virtual void take_parameters(std::uint64_t seed) = 0;
  // A round begins, of both programs: what must be the same around its two samples is settled now.
  virtual void begin_round() {}
  // So many calls on fresh contents, each clocked by itself: nanoseconds on the device's clock.
  virtual std::vector<double> sample(std::size_t calls) = 0;
  virtual std::size_t most_calls() const = 0;  // that a sample may have
};

// A call that takes so long is a sample by itself: what the first one behind another process finds
// is nothing beside it.
inline constexpr double long_call_ns = 1e6;

// The paired protocol of evaluation.md section 3 for such devices: warm-up by time; rounds in which
// reference and candidate make a sample each, in an order drawn anew; the datum is the ratio of a
// round. The candidate is checked behind samples that nobody can foresee, behind every suspiciously
// fast one, and for every distribution at the end; without `checks`, for two equal programs, never.
// What `sample` and the checks throw as timing_failure ends the measurement. Ratio, medians, rounds
// and a failure by statistics are filled in; the rest of case_timing is the caller's.
case_timing time_pair(clocked_program& candidate, clocked_program& reference,
                      const timing_rules& rules, random_stream& random, timed_checks* checks);

// What two equal programs in these two processes differ by: ln(reference / candidate), and half of
// its 95 % interval.
struct process_bias {
  double log_ratio = 0;
  double half_width = 0;
};
process_bias bias_of(const case_timing& equal_programs);
// `rules` for two programs in these processes, of which the reference's call takes so long: what
// differs by no more than equal programs may need not show.
timing_rules rules_between(const process_bias& bias, double reference_us, timing_rules rules);
// Takes the bias off a measurement; what is not known of it, and of the place of the
// candidate's code, widens the interval.
void take_off(const process_bias& bias, case_timing& timing);
// A reference's time with the bias taken off, as it was before.
double as_clocked(const process_bias& bias, double reference_us);

// The rules for a GPU: evaluation.md section 3, point 6; and those for finding the bias of two
// processes.
timing_rules gpu_timing_rules();
timing_rules gpu_calibration_rules();
// The first for a reference that waits for the host most of the time: what is clocked there is a
// processor, which others use as well, and a processor's rules say how far measurements of it may
// spread.
timing_rules host_bound_timing_rules();
// Whether a reference does: for `host_share` of a call, as the host sees it, the host is busy
// launching it, and for `busy_share` of what is scored of it the GPU works. One that waits for its
// own results has a large host_share as well, and a busy GPU.
bool waits_for_host(double host_share, double busy_share);

}  // namespace hone
