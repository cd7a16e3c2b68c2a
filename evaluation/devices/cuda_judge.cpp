#include "evaluation/devices/cuda_judge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "evaluation/compile/cuda_compiler.hpp"
#include "evaluation/devices/cores.hpp"
#include "evaluation/judge/clocks.hpp"
#include "evaluation/judge/gpu/gpu_trial.hpp"
#include "evaluation/judge/timed_checks.hpp"
#include "messages/ids.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr const char* kind = "cuda";
constexpr std::size_t kept_tasks = 1024;  // their texts and what is known of them
constexpr auto open_limit = std::chrono::seconds(20);
constexpr auto compile_limit = std::chrono::seconds(60);
constexpr std::uint64_t largest_offset = 1ULL << 30U;
constexpr double most_bias_unknown = 0.01;
constexpr std::uint64_t largest_arena = 16ULL << 30U;
constexpr std::size_t max_sets = 9;  // a sample of eight calls behind one that does not count
constexpr double train_ns = 3e6;
constexpr std::size_t few_samples = 5;
constexpr int doubtful_attempts = 3;  // on a throttled GPU, beside a slowed reference, or where the
                                      // host has waited for more than it should
constexpr int calibration_attempts = 3;
constexpr double most_bias =
    0.1;  // beyond that it is not luck: something is wrong with the process

double us_a_call(double ns, const train_clock& train) {
  return ns / 1e3 / static_cast<double>(train.calls);
}

// In nanoseconds, as it is scored.
double median_call(gpu_side& side, std::size_t most_calls) {
  const std::size_t calls = side.try_call() < long_call_ns ? most_calls : 1;
  std::vector<double> ns;
  for (std::size_t i = 0; i < few_samples; ++i) {
    const auto sample = side.sample(calls);
    ns.insert(ns.end(), sample.begin(), sample.end());
  }
  return median(ns);
}

// The reference's programs, in whichever process. Throws reference_error.
void open_programs_of(const task& t, gpu_process& in, const settings& asked) {
  const auto opened =
      in.open(reference_oracle::programs(t), nullptr, asked, clock::now() + open_limit);
  if (const auto* failed = std::get_if<session_failure>(&opened))
    throw reference_error(failed->outcome, failed->message);
}

// Sets a value, and back to what it was when it goes.
template <typename T>
class changed_for_now {
 public:
  changed_for_now(T& value, T to) : value_(&value), before_(std::exchange(value, std::move(to))) {}
  ~changed_for_now() { *value_ = std::move(before_); }
  changed_for_now(const changed_for_now&) = delete;
  changed_for_now& operator=(const changed_for_now&) = delete;

 private:
  T* value_;
  T before_;
};

}  // namespace

cuda_judge::own_kernels cuda_judge::own_kernels::compile_for(const std::string& architecture) {
  cuda_compiler compiler;
  const auto& names = judge_gpu::kernel_names();
  auto compiled = compiler.compile(judge_gpu::kernel_source(), {names.begin(), names.end()}, {},
                                   architecture, compile_limit);
  if (const auto* failed = std::get_if<compile_failure>(&compiled))
    throw std::runtime_error("the judge's own kernels do not compile: " + failed->message);
  return {compiler.name(), std::get<compiled_block>(std::move(compiled))};
}

struct cuda_judge::prepared_task {
  prepared_task(judge_gpu& gpu, gpu_workspace& room, const task& t,
                gpu_task::reference_source reference)
      : on_gpu(gpu, room, t, std::move(reference)) {}
  const task& of() const { return on_gpu.of(); }

  gpu_task on_gpu;
  random_stream random{random_bits()};
  std::map<std::string, case_facts> cases;  // by their sizes
};

cuda_judge::cuda_judge(const gpu_facts& facts, const cuda_judge_options& options)
    : facts_(facts),
      options_(options),
      core_lock_(options.core >= 0 ? lock_core(options.core) : unique_fd()),
      management_(facts.bus_id),
      kernels_(own_kernels::compile_for(facts.architecture)),
      gpu_(facts, kernels_.block),
      candidate_arena_(gpu_, options.arena_bytes > 0
                                 ? options.arena_bytes
                                 : std::min(largest_arena, facts.memory_bytes / 6)),
      reference_arena_(gpu_, candidate_arena_.size()),
      processes_(facts, kernels_.block, options.core, candidate_arena_, reference_arena_),
      prepared_(kept_tasks) {
  if (options.core >= 0 && !core_lock_)
    throw std::runtime_error("another process of Hone has processor core " +
                             std::to_string(options.core));
}

cuda_judge::~cuda_judge() = default;

std::optional<program_failure> cuda_judge::open_candidate(role in,
                                                          const schema::Artifact::Reader& artifact,
                                                          const task& t) {
  candidate_arena_.poison_all(gpu_);
  gpu_.finish();
  gpu_process& process = processes_.candidate(in);
  const auto opened = process.open(
      {{std::string(view(artifact.getPython())), t.inputs.size(), t.parameters.size()}}, &artifact,
      parse_settings(view(artifact.getSettings())), clock::now() + open_limit);
  if (const auto* failed = std::get_if<session_failure>(&opened)) return failure_of(*failed);
  candidate_session_.emplace(gpu_, candidate_arena_, process);
  return std::nullopt;
}

gpu_session& cuda_judge::reference_of(const task& t) {
  gpu_process& process = processes_.reference();
  const opened_reference wanted{t.id, reference_settings_, process.serial()};
  if (open_reference_ == wanted) return *reference_session_;
  open_reference_.reset();
  reference_session_.reset();
  reference_arena_.poison_used(gpu_);
  gpu_.finish();
  open_programs_of(t, process, reference_settings_);
  open_reference_ = wanted;
  reference_session_.emplace(gpu_, reference_arena_, process);
  return *reference_session_;
}

cuda_judge::prepared_task& cuda_judge::prepare(const task& t) {
  return prepared_.of(t.id, [&] {
    return std::make_unique<prepared_task>(
        gpu_, room_, t, [this](const task& of) -> gpu_session& { return reference_of(of); });
  });
}

void cuda_judge::forget(const task& t) { prepared_.forget(t.id); }

verification_result cuda_judge::verify(const schema::Artifact::Reader& artifact, const task& t,
                                       std::uint64_t& seed) {
  prepared_task& prepared = prepare(t);
  const auto failed = open_candidate(role::verifying, artifact, t);
  if (seed == 0) seed = random_bits();
  if (failed) return {.failure = *failed};
  gpu_trial trial(prepared.on_gpu, *candidate_session_);
  verification_limits limits;
  limits.call = options_.call_limit;
  return verify_program(trial, kind, seed, limits);
}

timed_program cuda_judge::time(const schema::Artifact::Reader& artifact, const task& t,
                               random_stream& random, int earlier) {
  timed_program result;
  prepared_task& prepared = prepare(t);
  const role in = earlier == 0 ? role::timing : role::confirming;
  if (earlier > 1) replace_candidate(in);
  std::vector<const task_case*> cases;
  for (const task_case& at : prepared.of().cases) {
    if (at.timed && runs_on(at, kind)) cases.push_back(&at);
  }
  // What its process differs by is found, for every case, before that has seen the variant.
  for (const task_case* at : cases) learn(prepared, *at, in, random);
  for (const task_case* at : cases) {
    if (result.failure.outcome != Outcome::OK) break;
    const case_facts& facts = learn(
        prepared, *at, in, random);  // again: a later case may have made another process necessary
    result.reverify_agreement = std::max(result.reverify_agreement, facts.rules.reverify_agreement);
    const auto known =
        facts.pairs.find(processes_.pair_of(in));  // of a process that has died since, nothing
    const pair_facts pair = known != facts.pairs.end() ? known->second : pair_facts{};
    if (auto failed = open_candidate(in, artifact, t)) {
      result.failure = *failed;
      return result;
    }
    case_timing timing = time_beyond_doubt(prepared, *at, in, facts, pair, random);
    result.failure = timing.failure;
    if (result.failure.outcome != Outcome::OK)
      result.failure.message += " (case " + print_sizes(*at) + ")";
    result.timings.emplace_back(*at, std::move(timing));
  }
  if (result.timings.empty())
    result.failure = {Outcome::INFRASTRUCTURE, "",
                      "the task has no timed case for this kind of device"};
  return result;
}

// Measured again, up to twice, where something else than the candidate may have been at work.
case_timing cuda_judge::time_beyond_doubt(prepared_task& prepared, const task_case& at, role in,
                                          const case_facts& facts, const pair_facts& pair,
                                          random_stream& random) {
  const auto time_once = [&] {
    const std::string before = management_.throttled_by();
    case_timing once = time_case(prepared, at, facts, pair, random);
    once.throttled = before.empty() ? management_.throttled_by() : before;
    return once;
  };
  case_timing timing = time_once();
  const auto is_slowed_here = [&] {
    return timing.failure.outcome == Outcome::OK && !facts.waits_for_host &&
           is_slowed(timing.reference_us, pair.reference_us);
  };
  const auto is_doubtful = [&] {
    return failed_for_unseen_time(timing) || is_slowed_here() ||
           (timing.failure.outcome == Outcome::OK && !timing.throttled.empty());
  };
  for (int attempt = 1; attempt < doubtful_attempts && is_doubtful(); ++attempt)
    timing = time_once();
  if (is_slowed_here() && timing.throttled.empty())
    timing.failure = judge_slowed_reference(prepared, at, in,
                                            as_clocked(pair.bias, timing.reference_us), random);
  return timing;
}

// The GPU itself may be slower than it was: the reference is timed beside itself once more, in a
// process that has not seen the candidate. If it is as fast as ever there (as it was clocked, in
// its one process), the candidate has found a way to what it is compared with.
program_failure cuda_judge::judge_slowed_reference(prepared_task& prepared, const task_case& at,
                                                   role in, double reference_us,
                                                   random_stream& random) {
  replace_candidate(in);
  const case_facts& facts = learn(prepared, at, in, random);
  const pair_facts& alone = facts.pairs.at(processes_.pair_of(in));
  const double alone_us = as_clocked(alone.bias, alone.reference_us);
  if (!is_slowed(reference_us, alone_us)) return {Outcome::OK, "", ""};
  return {Outcome::UNSTABLE, "",
          "the reference takes " + std::to_string(reference_us) +
              " us a call beside this program and " + std::to_string(alone_us) +
              " us beside itself"};
}

const case_facts& cuda_judge::learn(prepared_task& prepared, const task_case& at, role in,
                                    random_stream& random) {
  prepared.on_gpu.choose(at);
  auto found = prepared.cases.find(print_sizes(at));
  if (found == prepared.cases.end())
    found = prepared.cases.emplace(print_sizes(at), learn_case(prepared, random)).first;
  learn_pair(prepared, found->second, in, random);
  return found->second;
}

case_facts cuda_judge::learn_case(prepared_task& prepared, random_stream& random) {
  gpu_task& on_gpu = prepared.on_gpu;
  on_gpu.draw_parameters(random.bits());
  on_gpu.draw_inputs(distribution::declared, random.bits());
  on_gpu.expect();
  // Beside the calls' inputs and outputs there must be room for parameters, what prepare() makes of
  // them, and intermediate results.
  const std::uint64_t bytes_a_call = std::max<std::uint64_t>(
      1, total_bytes(on_gpu.inputs().layouts) + 3 * total_bytes(on_gpu.expected_layouts()));
  const std::uint64_t offset = std::min(largest_offset, candidate_arena_.size() / 8);
  const std::uint64_t taken =
      std::min(candidate_arena_.size(), offset + 2 * total_bytes(on_gpu.parameters().layouts));
  const std::uint64_t calls = (candidate_arena_.size() - taken) / 3 / bytes_a_call;
  case_facts facts;
  facts.limits = {std::clamp<std::uint64_t>(calls, 1, max_sets), facts_.l2_bytes,
                  calls > 0 ? offset : 0, options_.call_limit};
  facts.baselines = time_baselines(prepared, facts, random);
  time_reference_trains(prepared, facts, random);
  return facts;
}

// What the two processes of the moment differ by; of an odd one another takes the place.
void cuda_judge::learn_pair(prepared_task& prepared, case_facts& facts, role in,
                            random_stream& random) {
  for (int attempt = 1;; ++attempt) {
    const auto pair = processes_.pair_of(in);
    if (facts.pairs.contains(pair)) return;
    const pair_facts found_out = compare_processes(prepared, facts, in, random);
    const process_bias& bias = found_out.bias;
    const bool is_plausible = std::abs(bias.log_ratio) < most_bias;
    if (is_plausible && (bias.half_width < most_bias_unknown || attempt >= calibration_attempts)) {
      facts.pairs[pair] = found_out;
    } else if (attempt >= calibration_attempts) {
      throw reference_error(Outcome::INFRASTRUCTURE,
                            "the same program takes " + std::to_string(std::exp(bias.log_ratio)) +
                                " times as long in one process as in another");
    } else if (!is_plausible) {
      replace_one_of_pair(in, attempt);
    }
  }
}

// By a process that has run nothing yet, before which nothing is starting any more.
void cuda_judge::replace_candidate(role in) {
  candidate_session_.reset();
  processes_.replace(in);
  processes_.await_spares();
}

// One of the two is odd, and which one nobody knows: the candidate's goes first, then the
// reference's.
void cuda_judge::replace_one_of_pair(role in, int attempt) {
  if (attempt % 2 != 0) {
    replace_candidate(in);
    return;
  }
  open_reference_.reset();
  reference_session_.reset();
  processes_.replace_reference();
  processes_.await_spares();
}

// The reference in both processes. Where a process has its kernels' code is a matter of luck that
// stays with it, and a short kernel that fetches it from the other end of the chip takes some 0.1
// us longer (doc/decisions/012).
pair_facts cuda_judge::compare_processes(prepared_task& prepared, const case_facts& facts, role in,
                                         random_stream& random) {
  const task& t = prepared.on_gpu.of();
  candidate_session_.reset();  // the reference is about to be in its place
  candidate_arena_.poison_used(gpu_);
  gpu_.finish();
  gpu_process& process = processes_.candidate(in);
  open_programs_of(t, process, {});
  gpu_session twin(gpu_, candidate_arena_, process);
  gpu_side reference(gpu_, prepared.on_gpu, reference_of(t), facts.limits, random,
                     gpu_side::part::reference);
  gpu_side same(gpu_, prepared.on_gpu, twin, facts.limits, random, gpu_side::part::candidate);
  gpu_side::share_head_start(same, reference);
  case_timing timing = time_pair(same, reference, gpu_calibration_rules(), random, nullptr);
  if (timing.failure.outcome != Outcome::OK)
    throw reference_error(timing.failure.outcome, timing.failure.message);
  const process_bias bias = bias_of(timing);
  take_off(bias, timing);
  return {bias, timing.reference_us, unseen_beside(same.unseen_ns(), reference.unseen_ns()),
          same.train(train_ns, timing.candidate_us * 1e3, true).busy_ns > 0};
}

// How fast references follow each other, and whether the GPU waits for their host.
void cuda_judge::time_reference_trains(prepared_task& prepared, case_facts& facts,
                                       random_stream& random) {
  gpu_side side(gpu_, prepared.on_gpu, reference_of(prepared.of()), facts.limits, random,
                gpu_side::part::reference);
  side.take_parameters(random.bits());
  const double call_ns = median_call(side, facts.limits.sets);
  const train_clock train = train_left_alone([&] { return side.train(train_ns, call_ns, false); });
  const train_clock traced = side.train(train_ns, call_ns, true);
  facts.waits_for_host = waits_for_host(
      side.host_share(), traced.busy_ns / static_cast<double>(traced.calls) / call_ns);
  facts.reference_wall_us = us_a_call(train.wall_ns, train);
  facts.rules = facts.waits_for_host ? host_bound_timing_rules() : gpu_timing_rules();
}

// A call of the last sample, compared like any other.
program_failure cuda_judge::look_at_candidate(gpu_task& on_gpu, const gpu_side& candidate,
                                              std::size_t call, verification_result& totals) {
  const std::size_t set = candidate.set_of(call);
  on_gpu.draw_inputs(candidate.contents_of(set).how, candidate.contents_of(set).seed);
  return judge_by_degrees(totals, [&](exactness with, verification_result& seen) {
    on_gpu.expect(with);
    return check_gpu_call(on_gpu, *candidate_session_, call, set, seen);
  });
}

case_timing cuda_judge::time_case(prepared_task& prepared, const task_case& at,
                                  const case_facts& facts, const pair_facts& pair,
                                  random_stream& random) {
  gpu_task& on_gpu = prepared.on_gpu;
  on_gpu.choose(at);
  case_timing timing;
  try {
    gpu_side reference(gpu_, on_gpu, reference_of(on_gpu.of()), facts.limits, random,
                       gpu_side::part::reference);
    gpu_side candidate(gpu_, on_gpu, *candidate_session_, facts.limits, random,
                       gpu_side::part::candidate);
    std::uint64_t least_bytes = ~std::uint64_t{0};
    timed_checks checks(
        on_gpu.of().distributions, random,
        [&](std::optional<distribution> how, verification_result& totals) {
          const std::size_t call =
              how ? candidate.sample_otherwise(*how) : random.below(candidate.last_calls());
          const program_failure wrong = look_at_candidate(on_gpu, candidate, call, totals);
          if (wrong.outcome == Outcome::OK)
            least_bytes = std::min<std::uint64_t>(
                least_bytes,
                writes_outputs(on_gpu.aliases()) ? candidate_session_->output_bytes(call) : 0);
          return wrong;
        });
    gpu_side::share_head_start(candidate, reference);
    const timing_rules rules = rules_between(pair.bias, pair.reference_us, facts.rules);
    timing = time_pair(candidate, reference, rules, random, &checks);
    timing.baselines = facts.baselines;
    if (timing.log_ratios.empty()) return timing;
    take_off(pair.bias, timing);
    if (timing.failure.outcome != Outcome::OK) return timing;
    // Of a hopeless candidate there are too few rounds to tell, and of unknown processes nothing to
    // hold them against.
    if (timing.rounds >= rules.min_rounds && pair.reference_us > 0)
      timing.unseen_us =
          (unseen_beside(candidate.unseen_ns(), reference.unseen_ns()) - pair.unseen_ns) / 1e3;
    timing.floor_us = gpu_write_floor_us(least_bytes, facts_.l2_bytes, facts_.memory_gb_a_second);
    // CUPTI makes every launch slower, so one train is for it and another for how fast calls follow
    // each other.
    const train_clock train = train_left_alone(
        [&] { return candidate.train(train_ns, timing.candidate_us * 1e3, false); });
    checks.check();
    const train_clock traced = candidate.train(train_ns, timing.candidate_us * 1e3, true);
    checks.check();
    timing.train_us = us_a_call(train.device_ns, train);
    timing.candidate_wall_us = us_a_call(train.wall_ns, train);
    timing.reference_wall_us = facts.reference_wall_us;
    timing.train_span_us = us_a_call(traced.span_ns, traced);
    timing.train_busy_us = us_a_call(traced.busy_ns, traced);
    timing.traced_us = us_a_call(traced.device_ns, traced);
    for (const kernel_launch& launch : candidate_session_->launches()) {
      const double occupancy = facts_.threads_a_multiprocessor > 0
                                   ? static_cast<double>(launch.blocks_a_multiprocessor) *
                                         launch.threads / facts_.threads_a_multiprocessor
                                   : 0;
      timing.kernels.push_back(
          {launch.kernel, launch.threads, launch.blocks, launch.dynamic_shared_bytes, occupancy});
    }
    timing.flops = on_gpu.flops();
    timing.bytes = total_bytes(on_gpu.inputs().layouts) + total_bytes(on_gpu.parameters().layouts) +
                   total_bytes(on_gpu.expected_layouts());
    judge_clocks(train, traced, pair.can_trace, timing);
  } catch (const timing_failure& e) {
    timing.failure = e.why;
  }
  return timing;
}

std::vector<case_timing::baseline> cuda_judge::time_baselines(prepared_task& prepared,
                                                              const case_facts& facts,
                                                              random_stream& random) {
  std::vector<std::pair<std::string, settings>> ways(1);
  ways[0].first = "graph";
  ways[0].second.cuda_graph = true;
  if (prepared.on_gpu.of().relaxed) {
    ways.emplace_back("tf32+autotune", settings{});
    ways[1].second.tf32 = true;
    ways[1].second.cudnn_benchmark = true;
  }
  std::vector<case_timing::baseline> baselines;
  for (const auto& [name, asked] : ways) {
    try {
      const changed_for_now as_asked(reference_settings_, asked);
      gpu_side side(gpu_, prepared.on_gpu, reference_of(prepared.of()), facts.limits, random,
                    gpu_side::part::reference);
      side.take_parameters(random.bits());
      baselines.push_back({name, median_call(side, facts.limits.sets) / 1e3});
    } catch (const reference_error&) {
      // One that reads a tensor's contents cannot be captured: there is no such baseline.
    }
  }
  return baselines;
}

std::vector<std::string> cuda_judge::check_task(const task& t) {
  std::vector<std::string> lines;
  prepared_task& prepared = prepare(t);
  gpu_task& on_gpu = prepared.on_gpu;
  for (const task_case& at : t.cases) {
    if (!runs_on(at, kind)) continue;
    on_gpu.choose(at);
    double inexactness = 0;
    for (const distribution how : t.distributions) {
      on_gpu.draw_parameters(prepared.random.bits());
      on_gpu.draw_inputs(how, prepared.random.bits());
      on_gpu.expect();
      inexactness = std::max(inexactness, on_gpu.reference_inexactness());
    }
    lines.push_back(describe_case(at, on_gpu.expected_layouts(),
                                  on_gpu.has_wide() ? std::optional(inexactness) : std::nullopt));
  }
  return lines;
}

}  // namespace hone
