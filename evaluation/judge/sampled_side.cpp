#include "evaluation/judge/sampled_side.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t warm_up_calls = 4;
// Ratio of the lengths of two programs' calls up to which they are sampled alike.
constexpr double alike = 2;
// Time that the first call of a candidate's sample may take without being charged: twice the mean
// of the calls after it, plus `lead_in_ns`. Other caches and clocks explain that much.
constexpr double lead_in_ratio = 2;
constexpr double lead_in_ns = 50e3;

double elapsed_ns(clock::time_point since) {
  return std::chrono::duration<double, std::nano>(clock::now() - since).count();
}

double mean(std::span<const double> ns) {
  return std::accumulate(ns.begin(), ns.end(), 0.0) / static_cast<double>(ns.size());
}

}  // namespace

void sampled_side::pair_up(sampled_side& a, sampled_side& b) {
  a.other_ = &b;
  b.other_ = &a;
}

bool sampled_side::is_like_other() const {
  return other_ != nullptr &&
         std::max(call_ns_ / other_->call_ns_, other_->call_ns_ / call_ns_) <= alike;
}

// Two equal programs of about the limit's length must be timed in the same way: the first call of a
// sample would count for one of them only.
bool sampled_side::is_long() const {
  const bool is_other_short = other_ != nullptr && other_->call_ns_ < long_ns_;
  return call_ns_ >= (is_other_short ? alike * long_ns_ : long_ns_);
}

// Returns the wall time of a call, from which the number of calls of a sample follows. Calls become
// faster during a sample, so two equal programs must make the same number. What surrounds a call is
// the same on both sides, and a candidate's own time of it may be that of loading its code, or
// chosen.
double sampled_side::pace_ns() const {
  if (is_reference() || other_ == nullptr) return whole_call_ns_;
  if (is_like_other()) return other_->whole_call_ns_;
  return std::max(1.0, other_->whole_call_ns_ - other_->call_ns_ + call_ns_);
}

std::size_t sampled_side::lead_in_calls() const { return !is_long() && max_calls() > 1 ? 1 : 0; }

std::size_t sampled_side::min_calls() const {
  return std::min<std::size_t>(lead_in_calls() + (is_long() ? 1 : 2), max_calls());
}

double sampled_side::min_batch_ns() const { return static_cast<double>(min_calls()) * pace_ns(); }

// Makes a few calls to find out how long one takes, by the device's clock and with all that
// surrounds it. The latter may depend on both programs (head_start.hpp).
run_time sampled_side::clock_calls() {
  const bool is_first = clockings_++ == 0;  // the first call may load code
  const std::size_t calls =
      is_first || call_ns_ >= long_ns_ ? 1 : std::min(max_calls(), warm_up_calls);
  const auto before = clock::now();
  call_ns_ = std::max(1.0, sample(calls).back());
  const double wall_ns = elapsed_ns(before);
  whole_call_ns_ = std::max(1.0, wall_ns / static_cast<double>(calls));
  return {call_ns_, call_ns_, wall_ns, wall_ns, calls};
}

// Clocks calls again if none was made but the first, whose time may be that of loading code.
void sampled_side::end_warm_up() {
  if (clockings_ == 1) clock_calls();
  is_warm_ = true;
}

// Numbers of calls follow from the pace, unless the samples of both sides are surely single calls.
void sampled_side::recalibrate() {
  const bool is_pace_used = !is_like_other() || call_ns_ < alike * long_ns_;
  if (is_pace_used) clock_calls();
}

// Uses the mean and not the median, because one call of several must not do the work of the others.
double sampled_side::charged_call_ns(const std::vector<double>& times) const {
  const std::size_t lead_in = times.size() > 1 ? lead_in_calls() : 0;
  const double counted = mean(std::span(times).subspan(lead_in));
  const double beyond = role_ == role::candidate && lead_in > 0
                            ? std::max(0.0, times.front() - lead_in_ratio * counted - lead_in_ns)
                            : 0;
  return std::max(1.0, counted + beyond / static_cast<double>(times.size()));
}

run_time sampled_side::run(double target_ns) {
  if (!is_warm_) return clock_calls();
  const std::size_t calls =
      std::clamp(static_cast<std::size_t>(target_ns / pace_ns()), min_calls(), max_calls());
  const auto before = clock::now();
  const double call_ns = charged_call_ns(sample(calls));
  const double wall_ns = elapsed_ns(before);
  return {call_ns, call_ns, wall_ns, wall_ns, calls};
}

}  // namespace hone
