#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "evaluation/judge/timing.hpp"
#include "evaluation/sandbox/arena_layout.hpp"

namespace hone {

// What several clocks say of the same calls on a GPU must be one story: events, the host's clock
// and CUPTI (evaluation.md section 3, point 3; doc/decisions/012).

// Whether a reference took longer beside a candidate, `reference_us`, than beside itself. Nothing
// is known of the latter where it is 0.
bool is_slowed(double reference_us, double alone_us);

// Whether the host has waited longer for a train than the GPU took for it. Once that may be the
// host's own affairs.
bool is_late_on_host(const train_clock& train);
// The first of up to five trains that its host has not held up, or the last.
train_clock train_left_alone(const std::function<train_clock()>& run);

// What the host saw of a candidate's calls beyond their clocks, less what it saw of the
// reference's: by round each, and the differences as scores are made of rounds, the median of seven
// buckets' medians.
double unseen_beside(const std::vector<double>& candidate_ns,
                     const std::vector<double>& reference_ns);
// Whether the host waits longer for a candidate's calls than their clocks say, by `unseen_us` a
// call more than for the reference's and than two equal programs in these processes differ by.
// `call_us`: what a call takes by its clock. Nothing: it does not.
std::optional<program_failure> find_unseen_time(double unseen_us, double call_us);

// Whether that, and nothing else, is what a measurement has failed for.
bool failed_for_unseen_time(const case_timing& timing);

// What is added to a candidate's time, `call_us`, since the host waited for it: what it saw beyond
// what its clock may be off by. In us.
double unseen_charge(double unseen_us, double call_us);
// Takes a measurement as if every call of the candidate had taken so many us more. What the host
// saw may be chance, so an interval that contains 1 keeps its upper end: an equal program remains
// one.
void charge(double us, case_timing& timing);

// What a call must take that writes so many bytes, in us: of the L2 cache what fits into it, of
// DRAM the rest, each at the most that it can take. A bandwidth of 0: unknown.
double gpu_write_floor_us(std::uint64_t bytes, std::uint64_t l2_bytes, double dram_gb_a_second);

// Whether the clocks on two trains, one of them traced, and the time that was scored for a call
// tell the same story. Nothing: they do. `can_trace`: the trace shows what the reference does, so
// it must show something here.
std::optional<program_failure> find_disagreement(const train_clock& train,
                                                 const train_clock& traced, double scored_call_ns,
                                                 bool can_trace);

// All of this together, for a measurement that is good so far: it fails for what no clock can
// explain, or is charged for what the host saw.
void judge_clocks(const train_clock& train, const train_clock& traced, bool can_trace,
                  case_timing& timing);

}  // namespace hone
