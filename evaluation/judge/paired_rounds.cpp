#include "evaluation/judge/paired_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

// The first call of a sample finds other caches and clocks than those behind it: another process has had the GPU. It does not count,
// unless calls are so long that this is nothing.
constexpr double long_call_ns = 0.5e6;
constexpr double overhead_a_call_ns = 80e3;  // emptying the L2 cache, waiting
// A sample that much faster than every one that has been checked is checked as well: nobody gains by being wrong now and then.
constexpr double suspiciously_fast = 0.9;
constexpr std::uint64_t check_one_in = 8;

// How far two clocks of one train may differ: two per cent, and what starting and ending a train takes.
constexpr double clock_agreement = 0.02;
constexpr double start_and_end_ns = 60e3;
// A call by itself is slower than one of a train, whose caches are warm and whose launches overlap; half of it is out of reach.
constexpr double least_share_of_train = 0.5;

double elapsed_ns(clock::time_point since) { return std::chrono::duration<double, std::nano>(clock::now() - since).count(); }

std::string microseconds(double ns) {
  std::string digits = std::to_string(ns / 1e3);
  return digits.substr(0, digits.find('.') + 3) + " us";
}

struct sample_time {
  double device_ns = 0;
  double wall_ns = 0;
  double least_ns = 0;
};

class side {
 public:
  side(clocked_program& program, const timing_rules& rules) : program_(&program), rules_(rules) {}

  clocked_program& program() { return *program_; }

  void warm_up() {
    program_->sample(1);  // loads code
    const auto begin = clock::now();
    do {
      const auto times = program_->sample(std::min<std::size_t>(program_->most_calls(), 4));
      call_ns_ = times.back().device_ns;
      fastest_ns_ = std::min(fastest_ns_, call_ns_);
    } while (elapsed_ns(begin) < rules_.warm_up_ns);
    const auto calls = static_cast<std::size_t>(std::ceil(rules_.batch_ns / (call_ns_ + overhead_a_call_ns)));
    lead_in_ = call_ns_ < long_call_ns && program_->most_calls() > 1 ? 1 : 0;
    calls_ = std::clamp<std::size_t>(calls + lead_in_, 1 + lead_in_, program_->most_calls());
  }

  sample_time sample() {
    const auto times = program_->sample(calls_);
    std::vector<double> device;
    std::vector<double> wall;
    for (std::size_t i = lead_in_; i < times.size(); ++i) {
      device.push_back(times[i].device_ns);
      wall.push_back(times[i].wall_ns);
    }
    return {std::max(1.0, interquartile_mean(device)), interquartile_mean(wall), *std::min_element(device.begin(), device.end())};
  }

 private:
  clocked_program* program_;
  timing_rules rules_;
  double call_ns_ = 0;
  double fastest_ns_ = std::numeric_limits<double>::infinity();
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
  rules.batch_ns = 0.8e6;
  rules.warm_up_ns = 8e6;
  rules.reverify_agreement = 0.1;
  return rules;
}

case_timing time_pair(clocked_program& candidate, clocked_program& reference, const timing_rules& rules, random_stream& random, const std::function<void()>& check) {
  case_timing result;
  try {
    side c(candidate, rules);
    side r(reference, rules);
    const auto new_parameters = [&] {
      const std::uint64_t seed = random.bits();
      candidate.take_parameters(seed);
      reference.take_parameters(seed);
    };
    new_parameters();
    r.warm_up();
    c.warm_up();
    check();
    std::vector<double> reference_us;
    std::vector<double> candidate_us;
    std::vector<double> reference_wall;
    std::vector<double> candidate_wall;
    double checked_ns = std::numeric_limits<double>::infinity();
    double clocked_ns = 0;
    timing_decision decision = timing_decision::go_on;
    while (decision == timing_decision::go_on) {
      if (random.below(4) == 0 || result.log_ratios.empty()) new_parameters();
      const auto begin = clock::now();
      const bool reference_first = random.below(2) == 0;
      sample_time of_reference;
      if (reference_first) of_reference = r.sample();
      const sample_time of_candidate = c.sample();
      const auto checking = clock::now();
      if (random.below(check_one_in) == 0 || of_candidate.device_ns < suspiciously_fast * checked_ns) {
        check();
        checked_ns = std::min(checked_ns, of_candidate.device_ns);
      }
      const double check_ns = elapsed_ns(checking);
      if (!reference_first) of_reference = r.sample();
      clocked_ns += elapsed_ns(begin) - check_ns;
      reference_us.push_back(of_reference.device_ns / 1e3);
      candidate_us.push_back(of_candidate.device_ns / 1e3);
      reference_wall.push_back(of_reference.wall_ns / 1e3);
      candidate_wall.push_back(of_candidate.wall_ns / 1e3);
      result.log_ratios.push_back(std::log(of_reference.device_ns / of_candidate.device_ns));
      decision = decide(rules, result.log_ratios, clocked_ns);
    }
    result.rounds = static_cast<std::uint32_t>(result.log_ratios.size());
    result.ratio = summarise(result.log_ratios, bucket_center::mean);
    result.reference_us = median(reference_us);
    result.candidate_us = median(candidate_us);
    result.reference_wall_us = median(reference_wall);
    result.candidate_wall_us = median(candidate_wall);
    result.failure = {Outcome::OK, "", ""};
    double variance = 0;
    for (const double bucket : result.ratio.buckets) variance += (bucket / result.ratio.speedup - 1) * (bucket / result.ratio.speedup - 1) / static_cast<double>(result.ratio.buckets.size());
    if (decision == timing_decision::unstable || (decision != timing_decision::hopeless && variance > rules.unstable_variance)) {
      result.failure = {Outcome::UNSTABLE, "", "the rounds' speed-ups spread too far: 95 % of the median between " + std::to_string(result.ratio.range.low) + " and " + std::to_string(result.ratio.range.high)};
    }
  } catch (const timing_failure& e) {
    result.failure = e.why;
  }
  return result;
}

std::optional<program_failure> find_disagreement(const three_clocks& train, double scored_call_ns) {
  const double most = train.device_ns * (1 + clock_agreement) + start_and_end_ns;
  if (train.span_ns > most) {
    return program_failure{Outcome::CHEATING, "late_work", "worked on the GPU for " + microseconds(train.span_ns) + ", of which the timed region saw " + microseconds(train.device_ns)};
  }
  if (train.wall_ns > most) {
    return program_failure{Outcome::UNSTABLE, "", "the host waited " + microseconds(train.wall_ns) + " for work that took the GPU " + microseconds(train.device_ns)};
  }
  const double train_call_ns = train.device_ns / static_cast<double>(train.calls);
  if (scored_call_ns < least_share_of_train * train_call_ns - start_and_end_ns / static_cast<double>(train.calls)) {
    return program_failure{Outcome::CHEATING, "late_work", "a call by itself takes " + microseconds(scored_call_ns) + ", one of many " + microseconds(train_call_ns)};
  }
  return std::nullopt;
}

}  // namespace hone
