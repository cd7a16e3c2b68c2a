#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/case_timing.hpp"
#include "evaluation/program/clocks.hpp"

namespace hone {

// Three clocks time the same calls on a GPU: events, the host's clock and CUPTI. Their times must
// agree (evaluation.md section 3, point 3). Late work, which runs when no clock
// looks, ends as `cheating` (`late_work`) if the host waits over 50 us and 5 % longer for a call
// than its events say, if CUPTI sees a burst last over 2 % and 60 us longer than its events, or if
// a call is scored at less than 0.85 times the GPU's work for it (0.75 where the GPU idles for a
// tenth of the burst). A host that is late in a burst,
// or a trace without any work, is `unstable`.

// Returns true if a reference is launch-bound. `host_share` is the share of a call, by the host's
// clock, during which the host launches it. `busy_share` is the share of the scored time during
// which the GPU works. A reference that waits for its own results has a large host_share as well,
// but keeps the GPU busy.
bool is_launch_bound(double host_share, double busy_share);

// Returns true if a reference took notably longer when timed against a candidate, `reference_us`,
// than against itself, `alone_us`. Returns false if `alone_us` is 0, which means unknown.
bool is_slowed(double reference_us, double alone_us);

// Returns true if the host waited longer for a burst than the GPU's time for it explains. A single
// such burst may have causes other than the candidate.
bool is_late_on_host(const burst_clock& burst);
// Makes up to five bursts and returns the first that is not late on the host, or else the last.
burst_clock undisturbed_burst(const std::function<burst_clock()>& run);

// Returns true if the calls of a traced burst keep the GPU busy for notably longer than a scored
// call takes.
bool is_busier_than_scored(const burst_clock& traced, double scored_call_ns);
// Makes up to five traced bursts and returns the first that is not busier than a scored call, or
// else the least busy. Calls `move` between two bursts: some places in memory make a kernel slower,
// so it must move the memory that the program works in.
burst_clock typical_trace(double scored_call_ns, const std::function<burst_clock()>& trace,
                          const std::function<void()>& move);

// Returns the unseen time: host-side time per call that the device clock does not show, candidate
// minus reference. The arguments hold one value per round, and the differences are aggregated like
// scores: median of the seven buckets' medians. Any unit; tests and callers use nanoseconds.
double unseen_beside(const std::vector<double>& candidate_ns,
                     const std::vector<double>& reference_ns);
// Returns true if the unseen time of a call of `call_us` is long enough that chance, such as other
// processes' work, should be ruled out by another timing.
bool is_doubtful(double unseen_us, double call_us);
// Returns a failure if the unseen time is longer than any that honest programs have.
// `unseen_us` must be reduced by the unseen time of two equal programs in the same processes.
std::optional<program_failure> find_unseen_time(double unseen_us, double call_us);

// Returns the part of the unseen time that is added to a candidate's time: what exceeds the clocks'
// uncertainty. Microseconds.
double unseen_charge(double unseen_us, double call_us);
// Adds `us` to the time of every call of the candidate. The upper end of an interval that contains
// 1 is kept: unseen time may be chance, and must not make an equal program slower than equal.
void charge(double us, case_timing& timing);

// Returns the floor, in microseconds, of a call that writes `bytes`: up to `l2_bytes` go to the L2
// cache and the rest to DRAM, each at a bandwidth that cannot be exceeded. `dram_gb_per_second` is
// 0 if unknown.
double gpu_write_floor_us(std::uint64_t bytes, std::uint64_t l2_bytes, double dram_gb_per_second);

// Returns a failure if the clocks of two bursts, one of them traced, contradict each other or the
// time that was scored for a call. If `can_trace`, CUPTI shows the reference's work in this
// process, so it must show the candidate's as well.
std::optional<program_failure> find_disagreement(const burst_clock& burst,
                                                 const burst_clock& traced, double scored_call_ns,
                                                 bool can_trace);

// Applies all rules above to a measurement that has no failure: sets its failure, or charges its
// unseen time.
void judge_clocks(const burst_clock& burst, const burst_clock& traced, bool can_trace,
                  case_timing& timing);

}  // namespace hone
