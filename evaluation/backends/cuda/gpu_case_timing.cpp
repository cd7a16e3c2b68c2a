#include "evaluation/backends/cuda/gpu_case_timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "evaluation/backends/cuda/gpu_trial.hpp"
#include "evaluation/judge/clock_checks.hpp"

namespace hone {
namespace {

// The timing of one case, one function per phase.
class gpu_case_timing {
 public:
  gpu_case_timing(const gpu_case& of, random_stream& random)
      : of_(of),
        random_(&random),
        rules_(rules_between(of.pair.bias, of.pair.reference_us, of.facts.rules)),
        reference_(of.gpu, of.on_gpu, of.reference, of.facts.limits, of.budget, random,
                   gpu_side::role::reference),
        candidate_(of.gpu, of.on_gpu, of.candidate, limits_with(of.asked, of.tunes, of.facts),
                   of.budget, random, gpu_side::role::candidate),
        checks_(of.usable, random, [this](const auto& wanted) { return check(wanted); }) {
    if (of.is_screening) rules_ = screening_rules(rules_);
    if (of.of_module) rules_ = module_rules(rules_, of.pair.reference_us);
    if (of.expected_speedup) rules_.expected_log_ratio = std::log(*of.expected_speedup);
    gpu_side::pair_up(candidate_, reference_);
  }

  // Returns false if the measurement has failed.
  bool time_rounds() {
    timing_ = time_pair(candidate_, reference_, rules_, *random_, &checks_);
    timing_.baselines = of_.facts.baselines;
    if (timing_.rounds == 0) return false;
    subtract_bias(of_.pair.bias, timing_);
    timing_.floor_us =
        gpu_write_floor_us(min_bytes_, of_.device.l2_bytes, of_.device.memory_gb_per_second);
    return !timing_.failure;
  }

  bool is_confirmed() const { return timing_.is_confirmed; }

  // Skips hopeless candidates, which have too few rounds for unseen time, and processes without a
  // calibration, whose own unseen time is unknown.
  void find_unseen_time() {
    if (timing_.rounds < rules_.min_rounds_of_very_long_calls || of_.pair.reference_us <= 0) return;
    timing_.unseen_us =
        (unseen_beside(candidate_.unseen_ns(), reference_.unseen_ns()) - of_.pair.unseen_ns) / 1e3;
  }

  // Makes two bursts, because CUPTI makes every launch slower: one shows how fast calls follow each
  // other, the other is traced.
  void time_bursts() {
    const double call_ns = timing_.candidate_us * 1e3;
    burst_ = undisturbed_burst([&] { return candidate_.burst(burst_ns, call_ns, false); });
    checks_.check();
    const auto trace = [&] {
      const burst_clock traced = candidate_.burst(burst_ns, call_ns, true);
      checks_.check();
      return traced;
    };
    traced_ = typical_trace(call_ns, trace, [&] { candidate_.set_parameters({random_->bits()}); });
    timing_.burst_us = us_per_call(burst_.device_ns, burst_);
    timing_.candidate_wall_us = us_per_call(burst_.wall_ns, burst_);
    timing_.reference_wall_us = of_.facts.reference_wall_us;
    timing_.burst_span_us = us_per_call(traced_.span_ns, traced_);
    timing_.burst_busy_us = us_per_call(traced_.busy_ns, traced_);
    timing_.traced_us = us_per_call(traced_.device_ns, traced_);
  }

  void describe_work() {
    for (const kernel_launch& launch : of_.candidate.launches()) {
      const double occupancy = of_.device.threads_per_multiprocessor > 0
                                   ? static_cast<double>(launch.blocks_per_multiprocessor) *
                                         launch.threads / of_.device.threads_per_multiprocessor
                                   : 0;
      timing_.kernels.push_back(
          {launch.kernel, launch.threads, launch.blocks, launch.dynamic_shared_bytes, occupancy});
    }
    timing_.flops = of_.on_gpu.flops();
    timing_.bytes = total_bytes(of_.on_gpu.inputs().layouts) +
                    total_bytes(of_.on_gpu.parameters().layouts) +
                    total_bytes(of_.on_gpu.expected_layouts());
  }

  case_timing judge() {
    judge_clocks(burst_, traced_, of_.pair.can_trace, timing_);
    return std::move(timing_);
  }

  case_timing fail(const program_failure& why) {
    timing_.failure = why;
    return std::move(timing_);
  }
  case_timing result() { return std::move(timing_); }

 private:
  // Checks a call of the last sample.
  timed_checks::checked_call check(std::optional<distribution> wanted_contents) {
    const std::size_t call = draw_call(
        candidate_.last_calls(), wanted_contents, *random_,
        [this](std::size_t i) { return candidate_.contents_of(candidate_.set_of(i)).how; });
    const std::size_t set = candidate_.set_of(call);
    const gpu_side::contents& held = candidate_.contents_of(set);
    of_.on_gpu.draw_inputs(held.how, held.seed);
    const auto timed = reference_.readable_call_on(held);
    evidence_.begin(held.how, [&](evidence wanted) {
      if (!timed) return of_.on_gpu.expect(wanted);
      of_.on_gpu.expect_outputs_of(of_.reference, *timed);
      of_.on_gpu.gather(wanted);
    });
    of_.candidate.require_row_major(of_.on_gpu.row_major_outputs());
    worst_errors totals;
    auto checked = evidence_.judge(
        totals, [&](evidence wanted) { of_.on_gpu.gather(wanted); },
        [&](worst_errors& errors) {
          gpu_call finished(of_.on_gpu, of_.candidate, call, set);
          return check_call(finished, of_.on_gpu.aliases(), of_.on_gpu.of(), errors);
        });
    if (checked) {
      const bool writes = writes_outputs(of_.on_gpu.aliases());
      min_bytes_ =
          std::min<std::uint64_t>(min_bytes_, writes ? of_.candidate.output_bytes(call) : 0);
    }
    return {held.how, std::move(checked)};
  }

  gpu_case of_;
  random_stream* random_;
  timing_rules rules_;
  gpu_side reference_;
  gpu_side candidate_;
  timed_checks checks_;
  evidence_plan evidence_;
  // Smallest number of bytes that a checked call wrote.
  std::uint64_t min_bytes_ = std::numeric_limits<std::uint64_t>::max();
  burst_clock burst_;
  burst_clock traced_;
  case_timing timing_;
};

}  // namespace

case_timing time_gpu_case(const gpu_case& of, random_stream& random) {
  gpu_case_timing timing(of, random);
  try {
    if (!timing.time_rounds() || timing.is_confirmed() || of.of_module) return timing.result();
    timing.find_unseen_time();
    timing.time_bursts();
    timing.describe_work();
    return timing.judge();
  } catch (const timing_failure& e) {
    return timing.fail(e.why);
  }
}

}  // namespace hone
