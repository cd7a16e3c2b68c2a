#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/program/clocks.hpp"

namespace hone {

// Several clocks see the same calls on a GPU: events, the host's clock and CUPTI. What they say
// must agree (evaluation.md section 3, point 3; doc/decisions/012).

// Returns true if a reference is launch-bound: its host launches for `host_share` of a call, as the
// host sees it, and the GPU works for `busy_share` of the time that is scored. A reference that
// waits for its own results has a large host_share as well, but keeps the GPU busy.
bool is_launch_bound(double host_share, double busy_share);

// Returns true if a reference took notably longer beside a candidate, `reference_us`, than beside
// itself, `alone_us`. Returns false if `alone_us` is 0, which means unknown.
bool is_slowed(double reference_us, double alone_us);

// Returns true if the host waited longer for a burst than the GPU took for it. Once, that may have
// other reasons.
bool is_late_on_host(const burst_clock& burst);
// Makes up to five bursts and returns the first that its host did not delay, or the last.
burst_clock undisturbed_burst(const std::function<burst_clock()>& run);

// Returns the unseen time: host-side time per call that the device clock does not show, candidate
// minus reference. The arguments hold one value per round, and the differences are aggregated like
// scores: median of the seven buckets' medians. Any unit; tests and callers use nanoseconds.
double unseen_beside(const std::vector<double>& candidate_ns,
                     const std::vector<double>& reference_ns);
// Returns a failure if `unseen_us`, less what two equal programs show in these processes, is more
// than clocks may differ by for a call of `call_us`.
std::optional<program_failure> find_unseen_time(double unseen_us, double call_us);

// Returns the part of the unseen time that is added to a candidate's time: what exceeds the clocks'
// uncertainty. Microseconds.
double unseen_charge(double unseen_us, double call_us);
// Adds `us` to the time of every call of the candidate. Unseen time may be chance, so an interval
// that contains 1 keeps its upper end, and an equal program stays equal.
void charge(double us, case_timing& timing);

// Returns the least time of a call that writes `bytes`, in microseconds: to the L2 cache what fits
// into it, to DRAM the rest, each at a bandwidth that cannot be exceeded. `dram_gb_per_second` 0:
// unknown.
double gpu_write_floor_us(std::uint64_t bytes, std::uint64_t l2_bytes, double dram_gb_per_second);

// Returns a failure if the clocks of two bursts, one of them traced, contradict each other or the
// time that was scored for a call. `can_trace`: CUPTI shows the reference's work in this process,
// so it must show the candidate's.
std::optional<program_failure> find_disagreement(const burst_clock& burst,
                                                 const burst_clock& traced, double scored_call_ns,
                                                 bool can_trace);

// Applies all of these rules to a measurement without a failure: it gets one, or is charged for
// unseen time.
void judge_clocks(const burst_clock& burst, const burst_clock& traced, bool can_trace,
                  case_timing& timing);

}  // namespace hone
