#include "evaluation/backends/cuda/gpu_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "evaluation/backends/cuda/reference_settings.hpp"
#include "evaluation/judge/clock_checks.hpp"
#include "tasks/compiling/compiled_references.hpp"

namespace hone {
namespace {

constexpr std::uint64_t largest_offset = 1ULL << 30U;
constexpr std::size_t max_sets = 9;  // a sample of eight calls after one that does not count
constexpr std::size_t few_samples = 5;
constexpr int calibration_attempts = 3;
constexpr double max_bias_half_width = 0.01;

// Returns the median nanoseconds of a call, as it is scored.
double median_call(gpu_side& side) {
  const double call_ns = side.try_call();
  if (call_ns >= very_long_call_ns) return call_ns;
  const std::size_t calls = call_ns < long_call_ns ? side.max_calls() : 1;
  std::vector<double> ns;
  for (std::size_t i = 0; i < few_samples; ++i) {
    const auto sample = side.sample(calls);
    ns.insert(ns.end(), sample.begin(), sample.end());
  }
  return median(ns);
}

// No two processes are compared by such calls, and no graph is a baseline, which would differ by
// less than a thousandth.
bool is_hardly_sampled(const case_facts& facts) {
  return !facts.is_launch_bound && facts.reference_call_us * 1e3 >= hardly_sampled_call_ns;
}

// True if a few calls would show the host's other work and nothing of the processes: the calls are
// very long, and the host launches for most of that time.
bool is_host_for_long(const case_facts& facts) {
  return facts.is_launch_bound && facts.reference_call_us * 1e3 >= very_long_call_ns;
}

}  // namespace

gpu_side::limits limits_with(const settings& asked, bool tunes, const case_facts& facts) {
  gpu_side::limits limits = facts.limits;
  if (asked.cuda_graph && is_host_for_long(facts)) limits.sets = 1;
  if (tunes) limits.first += tuning_limit;
  return limits;
}

double us_per_call(double ns, const burst_clock& burst) {
  return ns / 1e3 / static_cast<double>(burst.calls);
}

const case_facts& gpu_calibrator::calibrate(prepared_gpu_task& prepared, const task_case& at,
                                            gpu_sessions::role in, bias_precision wanted,
                                            random_stream& random) {
  case_facts& facts = facts_of(prepared, at, random);
  calibrate_pair(prepared, facts, in, wanted, random);
  return facts;
}

case_facts& gpu_calibrator::facts_of(prepared_gpu_task& prepared, const task_case& at,
                                     random_stream& random) {
  prepared.on_gpu.choose(at);
  auto found = prepared.cases.find(print_sizes(at));
  if (found == prepared.cases.end())
    found = prepared.cases.emplace(print_sizes(at), calibrate_case(prepared, at, random)).first;
  return found->second;
}

double gpu_calibrator::time_alone(prepared_gpu_task& prepared, gpu_session& session,
                                  const case_facts& facts, random_stream& random) {
  time_budget budget;
  gpu_side side(*gpu_, prepared.on_gpu, session, facts.limits, budget, random,
                gpu_side::role::reference);
  side.set_parameters({random.bits()});
  return median_call(side) / 1e3;
}

case_facts gpu_calibrator::calibrate_case(prepared_gpu_task& prepared, const task_case& at,
                                          random_stream& random) {
  case_facts facts;
  facts.limits = limits_of(prepared.on_gpu, random);
  time_reference(prepared, facts, random);
  if (options_.baselines) facts.baselines = time_baselines(prepared, at, facts, random);
  return facts;
}

// Besides the calls' inputs and outputs, the arena must have room for parameters, for the results
// of prepare(), and for intermediate results.
gpu_side::limits gpu_calibrator::limits_of(gpu_task& on_gpu, random_stream& random) const {
  on_gpu.draw_parameters(distribution::declared, random.bits());
  on_gpu.draw_inputs(distribution::declared, random.bits());
  on_gpu.expect(evidence::own_types);
  const std::uint64_t bytes_per_call = std::max<std::uint64_t>(
      1, total_bytes(on_gpu.inputs().layouts) + 3 * total_bytes(on_gpu.expected_layouts()));
  const std::uint64_t size = sessions_->arena_bytes();
  const std::uint64_t offset = std::min(largest_offset, size / 8);
  const std::uint64_t taken = std::min(size, offset + 2 * total_bytes(on_gpu.parameters().layouts));
  const std::uint64_t calls = (size - taken) / 3 / bytes_per_call;
  return {std::clamp<std::uint64_t>(calls, 1, max_sets), facts_.l2_bytes, calls > 0 ? offset : 0,
          options_.call_limit};
}

std::vector<case_timing::baseline> gpu_calibrator::time_baselines(prepared_gpu_task& prepared,
                                                                  const task_case& at,
                                                                  const case_facts& facts,
                                                                  random_stream& random) {
  std::vector<case_timing::baseline> baselines;
  std::vector<std::pair<std::string, opened_settings>> ways;
  const auto add_way = [&ways](const char* name) -> opened_settings& {
    return ways.emplace_back(name, opened_settings{}).second;
  };
  if (is_hardly_sampled(facts)) {
    baselines.push_back({"graph", {}, "calls of this length gain nothing from a graph"});
  } else {
    add_way("graph").cuda_graph = true;
  }
  add_way("default").cudnn_tf32 = true;
  opened_settings& tuned = add_way("tf32+autotune");
  tuned.tf32 = true;
  tuned.cudnn_benchmark = true;
  if (!options_.compiled_references.empty()) {
    const auto file = compiled_reference(options_.compiled_references, prepared.of(), at);
    if (std::filesystem::exists(file)) {
      add_way("inductor").compiled = std::filesystem::absolute(file);
    } else {
      baselines.push_back({"inductor", {}, "not compiled for " + print_sizes(at)});
    }
  }
  for (const auto& [name, asked] : ways) {
    const gpu_side::limits limits = limits_with(asked, asked.cudnn_benchmark, facts);
    case_timing::baseline& made = baselines.emplace_back(case_timing::baseline{name, {}, {}});
    try {
      const auto problem =
          asked.compiled.empty() ? std::nullopt : disagreement(prepared, asked, random);
      if (problem) {
        made.problem = *problem;
      } else {
        made.us = time_baseline(prepared, asked, limits, random);
      }
    } catch (const reference_error& e) {
      // A reference that reads a tensor's contents, for example, cannot be captured in a CUDA
      // graph.
      made.problem = e.what();
    }
  }
  return baselines;
}

// Returns microseconds per call.
double gpu_calibrator::time_baseline(prepared_gpu_task& prepared, const opened_settings& asked,
                                     const gpu_side::limits& limits, random_stream& random) {
  const gpu_sessions::reference_settings_scope scope(*sessions_, asked);
  time_budget budget;
  gpu_side side(*gpu_, prepared.on_gpu, sessions_->reference(prepared.of()), limits, budget, random,
                gpu_side::role::reference);
  side.set_parameters({random.bits()});
  return median_call(side) / 1e3;
}

// Returns why the reference's results with these settings are not those of the eager reference, or
// nullopt if they are.
std::optional<std::string> gpu_calibrator::disagreement(prepared_gpu_task& prepared,
                                                        const opened_settings& asked,
                                                        random_stream& random) {
  gpu_task& on_gpu = prepared.on_gpu;
  on_gpu.draw_parameters(distribution::declared, random.bits());
  on_gpu.draw_inputs(distribution::declared, random.bits());
  on_gpu.expect(evidence::thorough);
  const auto found = reference_agreement(*sessions_, on_gpu, asked);
  return found ? found->problem : found.error().message;
}

// Times calls of the reference by themselves and in bursts, and finds out whether it is
// launch-bound.
void gpu_calibrator::time_reference(prepared_gpu_task& prepared, case_facts& facts,
                                    random_stream& random) {
  time_budget budget;
  gpu_side side(*gpu_, prepared.on_gpu, sessions_->reference(prepared.of()), facts.limits, budget,
                random, gpu_side::role::reference);
  side.set_parameters({random.bits()});
  const double call_ns = median_call(side);
  const burst_clock burst = undisturbed_burst([&] { return side.burst(burst_ns, call_ns, false); });
  const burst_clock traced = side.burst(burst_ns, call_ns, true);
  facts.is_launch_bound = is_launch_bound(
      side.host_share(), traced.busy_ns / static_cast<double>(traced.calls) / call_ns);
  facts.reference_call_us = call_ns / 1e3;
  facts.reference_wall_us = us_per_call(burst.wall_ns, burst);
  facts.can_trace = traced.busy_ns > 0;
  facts.rules = facts.is_launch_bound ? launch_bound_timing_rules(call_ns) : gpu_timing_rules();
  if (facts.is_launch_bound) facts.limits.long_call_ns = long_launch_bound_call_ns;
  if (call_ns >= facts.limits.long_call_ns) facts.rules = rules_of_long_calls(facts.rules, call_ns);
}

// Finds the bias of the two current processes. If it is implausible, one of them is replaced.
void gpu_calibrator::calibrate_pair(prepared_gpu_task& prepared, case_facts& facts,
                                    gpu_sessions::role in, bias_precision wanted,
                                    random_stream& random) {
  for (int attempt = 1;; ++attempt) {
    const auto pair = sessions_->pair_of(in);
    const auto known = facts.pairs.find(pair);
    if (known != facts.pairs.end() && known->second.precision >= wanted) return;
    if (is_hardly_sampled(facts) || is_host_for_long(facts)) {
      const process_bias unknown = facts.is_launch_bound ? beside_launch_bound({}) : unknown_bias();
      facts.pairs[pair] = {unknown, facts.reference_call_us, 0, facts.can_trace,
                           bias_precision::fine};
      return;
    }
    const pair_facts found = compare_processes(prepared, facts, in, wanted, random);
    const bool is_plausible = std::abs(found.bias.log_ratio) < largest_process_bias;
    // Nothing in a process makes a long call of another length, apart from chance.
    const bool is_precise = found.bias.half_width < max_bias_half_width || facts.is_launch_bound ||
                            found.reference_us * 1e3 >= long_call_ns;
    const bool is_last = attempt >= calibration_attempts;
    if (is_plausible && (is_precise || is_last)) {
      facts.pairs[pair] = found;
    } else if (is_last && facts.is_launch_bound) {
      facts.pairs[pair] = found;
      facts.pairs[pair].bias = on_a_busy_host(found.bias);
    } else if (is_last) {
      throw reference_error(Outcome::INFRASTRUCTURE,
                            "the same program takes " +
                                std::to_string(std::exp(found.bias.log_ratio)) +
                                " times as long in one process as in another");
    } else if (!is_plausible) {
      replace_one_of_pair(in, attempt);
    }
  }
}

// Replaces the candidate's process at odd attempts and the reference's process at even ones,
// because it is unknown which of the two is at fault.
void gpu_calibrator::replace_one_of_pair(gpu_sessions::role in, int attempt) {
  if (attempt % 2 != 0) {
    sessions_->replace_candidate(in);
  } else {
    sessions_->replace_reference();
  }
}

// Times the reference in both processes. The place of kernels' code in memory is random and stays
// the same as long as a process lives, and a short kernel whose code is at the other end of the
// chip takes some 0.1 us longer.
pair_facts gpu_calibrator::compare_processes(prepared_gpu_task& prepared, const case_facts& facts,
                                             gpu_sessions::role in, bias_precision wanted,
                                             random_stream& random) {
  const task& t = prepared.of();
  gpu_session& twin = sessions_->open_reference_as_candidate(in, t);
  time_budget budget;
  gpu_side reference(*gpu_, prepared.on_gpu, sessions_->reference(t), facts.limits, budget, random,
                     gpu_side::role::reference);
  gpu_side same(*gpu_, prepared.on_gpu, twin, facts.limits, budget, random,
                gpu_side::role::candidate);
  gpu_side::pair_up(same, reference);
  const bool is_long = facts.reference_call_us * 1e3 >= facts.limits.long_call_ns;
  const timing_rules rules = gpu_calibration_rules(facts.rules, wanted, is_long);
  case_timing timing = time_pair(same, reference, rules, random, nullptr);
  if (timing.failure) throw reference_error(timing.failure->outcome, timing.failure->message);
  const process_bias bias =
      facts.is_launch_bound ? beside_launch_bound(bias_of(timing)) : bias_of(timing);
  subtract_bias(bias, timing);
  return {bias, timing.reference_us, unseen_beside(same.unseen_ns(), reference.unseen_ns()),
          same.burst(burst_ns, timing.candidate_us * 1e3, true).busy_ns > 0,
          is_long ? bias_precision::fine : wanted};
}

}  // namespace hone
