#include "evaluation/judge/clock_checks.hpp"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// Largest difference between two clocks of one burst: two per cent, plus the time to start and end
// the burst.
constexpr double clock_agreement = 0.02;
constexpr double start_and_end_ns = 60e3;
// Least time of a scored call relative to its kernels' time in a burst. A scored call takes longer,
// because caches are warm in a burst, but CUPTI makes short kernels look longer.
constexpr double min_share_of_work = 0.85;
// The same, if the GPU is idle for more than `max_idle` of the burst: kernels that wait for the
// host find cold caches of code and constants, whereas a scored call's follow each
// other.
constexpr double min_share_of_cold_work = 0.75;
constexpr double max_idle = 0.1;
constexpr double event_resolution_ns = 0.5e3;
// Bursts that are made at most to find an undisturbed one.
constexpr int max_bursts = 5;
// Upper bounds of the L2 cache's bandwidth relative to DRAM's, and of an unknown DRAM bandwidth.
// They are generous, because only impossible times may lie below the floor.
constexpr double l2_over_dram = 5;
constexpr double unknown_gb_per_second = 20000;
// Unseen time beyond which a timing is repeated. Equal programs differ by less than a microsecond.
constexpr double doubtful_us = 5;
constexpr double doubtful_share = 0.01;
// Largest unseen time that is no failure. Captured convolutions of some processes have up to 33 us
// in every timing. It is charged, so that hiding less pays nothing.
constexpr double max_unseen_us = 50;
constexpr double max_unseen_share = 0.05;
// Unseen time that is not charged. Equal programs, and honest programs whose calls take under 100
// us, differ by as much.
constexpr double uncharged_us = 0.5;
constexpr double uncharged_share = 0.005;
// Largest slow-down of a reference timed against a candidate, relative to timing it against itself,
// that is no fault: the candidate contributes to the chip's heat and power.
constexpr double slowed_by = 1.1;
constexpr double slowed_by_us = 1;

std::string microseconds(double ns) { return print_number(ns / 1e3, 2) + " us"; }

double busy_ns_per_call(const burst_clock& traced) {
  return traced.busy_ns / static_cast<double>(traced.calls);
}

// Returns the longest time that another clock may show for work that took the device `device_ns`.
double max_beside(double device_ns) { return device_ns * (1 + clock_agreement) + start_and_end_ns; }

}  // namespace

bool is_launch_bound(double host_share, double busy_share) {
  constexpr double max_with_host_ahead = 0.8;
  constexpr double min_of_a_busy_gpu = 0.97;
  return host_share > max_with_host_ahead && busy_share < min_of_a_busy_gpu;
}

bool is_slowed(double reference_us, double alone_us) {
  return alone_us > 0 && reference_us > slowed_by * alone_us + slowed_by_us;
}

bool is_late_on_host(const burst_clock& burst) {
  return burst.wall_ns > max_beside(burst.device_ns);
}

burst_clock undisturbed_burst(const std::function<burst_clock()>& run) {
  burst_clock burst = run();
  for (int attempt = 1; attempt < max_bursts && is_late_on_host(burst); ++attempt) burst = run();
  return burst;
}

bool is_busier_than_scored(const burst_clock& traced, double scored_call_ns) {
  const bool is_cold = traced.busy_ns < (1 - max_idle) * traced.span_ns;
  const double min_share = is_cold ? min_share_of_cold_work : min_share_of_work;
  return scored_call_ns < min_share * busy_ns_per_call(traced) - event_resolution_ns;
}

burst_clock typical_trace(double scored_call_ns, const std::function<burst_clock()>& trace,
                          const std::function<void()>& move) {
  burst_clock least = trace();
  for (int attempt = 1; attempt < max_bursts && is_busier_than_scored(least, scored_call_ns);
       ++attempt) {
    move();
    const burst_clock again = trace();
    if (busy_ns_per_call(again) < busy_ns_per_call(least)) least = again;
  }
  return least;
}

double unseen_beside(const std::vector<double>& candidate_ns,
                     const std::vector<double>& reference_ns) {
  std::vector<double> differences(std::min(candidate_ns.size(), reference_ns.size()));
  for (std::size_t round = 0; round < differences.size(); ++round)
    differences[round] = candidate_ns[round] - reference_ns[round];
  return differences.empty() ? 0 : median(bucket_medians(differences));
}

bool is_doubtful(double unseen_us, double call_us) {
  return unseen_us > doubtful_us + doubtful_share * call_us;
}

std::optional<program_failure> find_unseen_time(double unseen_us, double call_us) {
  if (unseen_us <= max_unseen_us + max_unseen_share * call_us) return std::nullopt;
  return program_failure{Outcome::CHEATING, "late_work",
                         "the host waits " + microseconds(unseen_us * 1e3) +
                             " longer for a call than the call's clock says"};
}

double unseen_charge(double unseen_us, double call_us) {
  return std::max(0.0, unseen_us - uncharged_us - uncharged_share * call_us);
}

void charge(double us, case_timing& timing) {
  const interval before = timing.ratio.range;
  scale_speedups(std::log(timing.candidate_us / (timing.candidate_us + us)), timing);
  if (before.low <= 1 && before.high >= 1) timing.ratio.range.high = before.high;
  timing.candidate_us += us;
}

double gpu_write_floor_us(std::uint64_t bytes, std::uint64_t l2_bytes, double dram_gb_per_second) {
  const double dram = dram_gb_per_second > 0 ? dram_gb_per_second : unknown_gb_per_second;
  const auto cached = static_cast<double>(std::min(bytes, l2_bytes));
  return (cached / (l2_over_dram * dram) + (static_cast<double>(bytes) - cached) / dram) / 1e3;
}

std::optional<program_failure> find_disagreement(const burst_clock& burst,
                                                 const burst_clock& traced, double scored_call_ns,
                                                 bool can_trace) {
  if (can_trace && traced.busy_ns == 0)
    return program_failure{
        Outcome::UNSTABLE, "",
        "the trace shows none of the program's work on the GPU, but all of the reference's"};
  if (traced.span_ns > max_beside(traced.device_ns)) {
    return program_failure{Outcome::CHEATING, "late_work",
                           "worked on the GPU for " + microseconds(traced.span_ns) +
                               ", of which the timed region saw " + microseconds(traced.device_ns)};
  }
  if (is_late_on_host(burst)) {
    return program_failure{Outcome::UNSTABLE, "",
                           "the host waited " + microseconds(burst.wall_ns) +
                               " for work that took the GPU " + microseconds(burst.device_ns)};
  }
  if (is_busier_than_scored(traced, scored_call_ns)) {
    return program_failure{Outcome::CHEATING, "late_work",
                           "a call is timed at " + microseconds(scored_call_ns) +
                               " and keeps the GPU busy for " +
                               microseconds(busy_ns_per_call(traced)) + " of the " +
                               microseconds(traced.span_ns / static_cast<double>(traced.calls)) +
                               " that it takes in a burst"};
  }
  return std::nullopt;
}

void judge_clocks(const burst_clock& burst, const burst_clock& traced, bool can_trace,
                  case_timing& timing) {
  timing.failure = find_impossible_time(timing.candidate_us, timing.floor_us);
  if (timing.failure) return;
  timing.has_unseen_time = is_doubtful(timing.unseen_us, timing.candidate_us);
  timing.failure = find_unseen_time(timing.unseen_us, timing.candidate_us);
  if (timing.failure) return;
  timing.failure = find_disagreement(burst, traced, timing.candidate_us * 1e3, can_trace);
  if (timing.failure) return;
  charge(unseen_charge(timing.unseen_us, timing.candidate_us), timing);
}

}  // namespace hone
