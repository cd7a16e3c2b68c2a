#include "evaluation/judge/paired_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "evaluation/judge/patience.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t warm_up_calls = 4;
// A sample that much faster than every one that has been checked is checked as well: nobody gains
// by being wrong now and then.
constexpr double suspiciously_fast = 0.9;
constexpr std::uint64_t check_one_in = 4;
constexpr std::uint64_t new_parameters_one_in = 2;

// What the place of a kernel's code in memory adds to it or takes away, a matter of luck that a
// loaded module keeps (doc/decisions/012). The reference's is taken off with the bias; the
// candidate's is not known, so no interval is narrower.
constexpr double code_place_us = 0.1;
// What the first call of a candidate's sample may take, and not count: twice what those behind it
// take, and so much. Other caches and clocks explain that.
constexpr double most_of_lead_in = 2;
constexpr double lead_in_ns = 50e3;

double elapsed_ns(clock::time_point since) {
  return std::chrono::duration<double, std::nano>(clock::now() - since).count();
}

class side {
 public:
  side(clocked_program& program, const timing_rules& rules, bool is_candidate)
      : program_(&program), rules_(rules), is_candidate_(is_candidate) {}

  void warm_up() {
    call_ns_ = program_->sample(1).back();  // loads code
    const auto begin = clock::now();
    do clock_calls();
    while (elapsed_ns(begin) < rules_.warm_up_ns);
    // The first call of a sample finds other caches and clocks than those behind it, since another
    // process has had the GPU: it does not count, unless it does something else.
    lead_in_ = call_ns_ < long_call_ns && program_->most_calls() > 1 ? 1 : 0;
  }

  // A few calls as they are now: what is done around them follows what both programs have shown to
  // need.
  void clock_calls() {
    const std::size_t calls =
        call_ns_ >= long_call_ns ? 1 : std::min(program_->most_calls(), warm_up_calls);
    const auto before = clock::now();
    call_ns_ = program_->sample(calls).back();
    whole_call_ns_ = elapsed_ns(before) / static_cast<double>(calls);
  }

  // What the shortest sample takes that is worth having, with everything around its calls.
  double least_ns() const { return static_cast<double>(least_calls()) * whole_call_ns_; }
  // Samples shall take about so long.
  void plan(double ns) {
    calls_ = std::clamp(static_cast<std::size_t>(ns / whole_call_ns_), least_calls(),
                        program_->most_calls());
  }

  double sample() {
    const std::vector<double> times = program_->sample(calls_);
    // The mean: one call of several must not do the others' work.
    const double counted = mean(std::span(times).subspan(lead_in_));
    // What it does beyond, for the others or against the other side, is shared out to the calls.
    const double beyond =
        is_candidate_ && lead_in_ > 0
            ? std::max(0.0, times.front() - most_of_lead_in * counted - lead_in_ns)
            : 0;
    return std::max(1.0, counted + beyond / static_cast<double>(times.size()));
  }

 private:
  static double mean(std::span<const double> ns) {
    return std::accumulate(ns.begin(), ns.end(), 0.0) / static_cast<double>(ns.size());
  }
  std::size_t least_calls() const {
    return std::min(lead_in_ + (call_ns_ < long_call_ns ? 2 : 1), program_->most_calls());
  }

  clocked_program* program_;
  timing_rules rules_;
  bool is_candidate_;
  double call_ns_ = 0;
  double whole_call_ns_ = 0;  // with new contents, an empty cache and waiting
  std::size_t calls_ = 1;
  std::size_t lead_in_ = 0;
};

}  // namespace

timing_rules gpu_timing_rules() {
  timing_rules rules;
  rules.target_width = 0.005;
  rules.doubling_width = 0.01;
  rules.unstable_width = 0.05;
  rules.unstable_variance = 0.005;
  rules.budget_ns = 0.25e9;
  rules.min_rounds = 21;
  rules.near_equal = 0.02;
  rules.near_equal_rounds = 84;
  rules.batch_ns = 1.2e6;  // with everything that a call takes beside itself
  rules.warm_up_ns = 4e6;
  rules.reverify_agreement = 0.1;
  return rules;
}

timing_rules gpu_calibration_rules() {
  timing_rules rules = gpu_timing_rules();
  rules.target_width = 0.0015;
  rules.min_rounds = 42;
  rules.near_equal = 0;
  rules.doubling_width = 1;
  rules.unstable_width = 1;
  rules.unstable_variance = 1;
  rules.hopeless_ratio = 0;
  return rules;
}

timing_rules host_bound_timing_rules() {
  const timing_rules of_processors;
  timing_rules rules = gpu_timing_rules();
  rules.unstable_width = of_processors.unstable_width;
  rules.unstable_variance = of_processors.unstable_variance;
  rules.reverify_agreement = of_processors.reverify_agreement;
  return rules;
}

bool waits_for_host(double host_share, double busy_share) {
  constexpr double most_with_host_ahead = 0.8;
  constexpr double least_of_a_busy_gpu = 0.9;
  return host_share > most_with_host_ahead && busy_share < least_of_a_busy_gpu;
}

case_timing time_pair(clocked_program& candidate, clocked_program& reference,
                      const timing_rules& rules, random_stream& random, timed_checks* checks) {
  case_timing result;
  try {
    side c(candidate, rules, true);
    side r(reference, rules, false);
    patience left(rules.patience_ns);
    const auto sample_reference = [&] { return left.for_reference([&] { return r.sample(); }); };
    const auto check = [&] { left.for_judge([&] { checks->check(); }); };
    const auto new_parameters = [&] {
      const std::uint64_t seed = random.bits();
      candidate.take_parameters(seed);
      left.for_reference([&] { reference.take_parameters(seed); });
    };
    new_parameters();
    left.for_reference([&] { r.warm_up(); });
    c.warm_up();
    left.for_reference([&] { r.clock_calls(); });
    // Where one side's samples take long, the other's may as well: what is less noisy needs fewer
    // rounds.
    const double sample_ns = std::max({rules.batch_ns, r.least_ns(), c.least_ns()});
    r.plan(sample_ns);
    c.plan(sample_ns);
    if (checks != nullptr) check();
    std::vector<double> reference_us;
    std::vector<double> candidate_us;
    double checked_ns = std::numeric_limits<double>::infinity();
    double clocked_ns = 0;
    timing_decision decision = timing_decision::go_on;
    while (decision == timing_decision::go_on) {
      if (!result.log_ratios.empty() && random.below(new_parameters_one_in) == 0) new_parameters();
      left.check();
      candidate.begin_round();
      reference.begin_round();
      const auto begin = clock::now();
      const bool reference_first = random.below(2) == 0;
      double of_reference = reference_first ? sample_reference() : 0;
      const double of_candidate = c.sample();
      const auto checking = clock::now();
      if (checks != nullptr &&
          (random.below(check_one_in) == 0 || of_candidate < suspiciously_fast * checked_ns)) {
        check();
        checked_ns = std::min(checked_ns, of_candidate);
      }
      const double check_ns = elapsed_ns(checking);
      if (!reference_first) of_reference = sample_reference();
      clocked_ns += elapsed_ns(begin) - check_ns;
      reference_us.push_back(of_reference / 1e3);
      candidate_us.push_back(of_candidate / 1e3);
      result.log_ratios.push_back(std::log(of_reference / of_candidate));
      decision = decide(rules, result.log_ratios, clocked_ns);
    }
    if (checks != nullptr) {
      c.sample();  // does not count, and looks like those that did
      checks->check_all();
    }
    result.rounds = static_cast<std::uint32_t>(result.log_ratios.size());
    result.ratio = summarise(result.log_ratios);
    result.reference_us = median(reference_us);
    result.candidate_us = median(candidate_us);
    result.failure = {Outcome::OK, "", ""};
    double variance = 0;
    for (const double bucket : result.ratio.buckets)
      variance += (bucket / result.ratio.speedup - 1) * (bucket / result.ratio.speedup - 1) /
                  static_cast<double>(result.ratio.buckets.size());
    if (decision == timing_decision::unstable ||
        (decision != timing_decision::hopeless && variance > rules.unstable_variance)) {
      result.failure = {Outcome::UNSTABLE, "",
                        "the rounds' speed-ups spread too far: 95 % of the median between " +
                            std::to_string(result.ratio.range.low) + " and " +
                            std::to_string(result.ratio.range.high)};
    }
  } catch (const timing_failure& e) {
    result.failure = e.why;
  }
  return result;
}

process_bias bias_of(const case_timing& equal_programs) {
  const interval& range = equal_programs.ratio.range;
  return {median(equal_programs.log_ratios), std::log(range.high / range.low) / 2};
}

timing_rules rules_between(const process_bias& bias, double reference_us, timing_rules rules) {
  rules.equal_log_ratio = bias.log_ratio;
  rules.equal_half_width = bias.half_width + (reference_us > 0 ? code_place_us / reference_us : 0);
  return rules;
}

double as_clocked(const process_bias& bias, double reference_us) {
  return reference_us * std::exp(bias.log_ratio);
}

void take_off(const process_bias& bias, case_timing& timing) {
  timing.reference_us *= std::exp(-bias.log_ratio);
  scale_speedups(-bias.log_ratio, timing);
  const interval& range = timing.ratio.range;
  const double middle = std::sqrt(range.low * range.high);
  const double half_width = std::hypot(std::log(range.high / range.low) / 2, bias.half_width) +
                            code_place_us / timing.candidate_us;
  timing.ratio.range = {middle * std::exp(-half_width), middle * std::exp(half_width)};
}

}  // namespace hone
