#pragma once

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/judge/timing_rules.hpp"

namespace hone {

// The difference between two equal programs in two given processes, as ln(reference / candidate),
// and half of its 95 % interval. It is due to the random places of code and data in each
// process.
struct process_bias {
  double log_ratio = 0;
  double half_width = 0;
};

// Returns the bias of two processes from timing the same program in both of them. Of long calls it
// is 0 unless the interval of the difference excludes 0: some have two lengths, depending on where
// their data lies.
process_bias bias_of(const case_timing& equal_programs);
// Returns the bias of two processes that were not compared, or in too few rounds to show less than
// 5 %: some GPUs take 1 % longer for a long call in one of them, because of where its
// data lies.
process_bias unknown_bias();
// Returns the bias if the reference is launch-bound: the host's time for a call then also differs
// between two loads of one program in one process.
process_bias beside_launch_bound(process_bias bias);

// A bias beyond this, in log ratio, is not luck: something is wrong with one of the processes, or,
// with a launch-bound reference, the host does other work.
inline constexpr double largest_process_bias = 0.1;
// Returns what to take for such a bias of the host: it is subtracted where that lowers a score, and
// the interval is as wide as it.
process_bias on_a_busy_host(const process_bias& bias);

// Returns `rules` adapted to two processes with this bias: a difference that equal programs may
// show there counts as none. `reference_us`: the time of a reference's call, or 0 if unknown.
timing_rules rules_between(const process_bias& bias, double reference_us, timing_rules rules);

// Subtracts the bias from a measurement. The interval widens by the uncertainty of the bias and by
// the effect of the unknown place of the candidate's code.
void subtract_bias(const process_bias& bias, case_timing& timing);

// Returns a reference's time as it was clocked, before the bias was subtracted.
double as_clocked(const process_bias& bias, double reference_us);

}  // namespace hone
