#include "evaluation/backends/cuda/cuda_judge.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cuda/gpu_case_timing.hpp"
#include "evaluation/backends/cuda/gpu_trial.hpp"
#include "evaluation/backends/cuda/reference_settings.hpp"
#include "evaluation/judge/clock_checks.hpp"
#include "messages/ids.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

constexpr std::size_t kept_tasks = 1024;  // with their texts and facts
// Two arenas leave half of a GPU's memory to the judge's own tensors and to the processes.
constexpr std::uint64_t arena_share = 4;
constexpr std::uint64_t largest_arena = 40ULL << 30U;
// Attempts at a timing that something other than the candidate may have disturbed.
constexpr int doubtful_attempts = 3;
// How long the constructor of a task's own module may take.
constexpr std::chrono::milliseconds constructor_limit{60000};
// Half-width, in log ratio, of what the judge's clock leaves open for a call of a Python module:
// what passing a turn takes differs from process to process.
constexpr double uncertain_share = 0.003;
constexpr double uncertain_us = 4;

bias_precision precision_for(const wanted_timing& wanted) {
  return wanted.expected_speedup || wanted.is_screening ? bias_precision::coarse
                                                        : bias_precision::fine;
}

std::uint64_t arena_bytes_for(const gpu_facts& facts, const cuda_judge_options& options) {
  return options.arena_bytes > 0 ? options.arena_bytes
                                 : std::min(largest_arena, facts.memory_bytes / arena_share);
}

// Throws before anything is started on a GPU on which another process measures.
unique_fd take_gpu(const gpu_facts& facts, const early_lock& kept) {
  unique_fd held = take_gpu_lock(kept, facts.uuid);
  if (!held) throw std::runtime_error("another process of Hone judges on " + facts.uuid);
  return held;
}

unique_fd take_core(const reserved_core& core) {
  if (core.number < 0) return {};
  unique_fd held = core.take_lock();
  if (!held)
    throw std::runtime_error("another process of Hone has reserved processor core " +
                             std::to_string(core.number));
  return held;
}

}  // namespace

cuda_judge::cuda_judge(const gpu_facts& facts, const cuda_judge_options& options)
    : facts_(facts),
      call_limit_(options.call_limit),
      gpu_lock_(options.locks_gpu ? take_gpu(facts, options.kept_lock) : unique_fd()),
      core_lock_(take_core(options.launch_core)),
      management_(facts.bus_id),
      processes_(facts, options.spares, options.driver_cache),
      kernels_(facts.architecture),
      gpu_(facts),
      sessions_(gpu_.load(kernels_.blocks()), processes_, kernels_.tools(),
                options.launch_core.number, arena_bytes_for(facts, options)),
      modules_(gpu_, facts, processes_.visible(), options.launch_core.number,
               sessions_.candidate_arena(), sessions_.reference_arena()),
      calibrator_(gpu_, sessions_, facts,
                  {options.call_limit, options.baselines, options.compiled_references}),
      prepared_(kept_tasks) {}

cuda_judge::~cuda_judge() {
  modules_.end();
  processes_.end();
}

prepared_gpu_task& cuda_judge::prepare(const task& t) {
  return prepared_.of(t.id, [&] {
    return std::make_unique<prepared_gpu_task>(
        gpu_, room_, t, [this](const task& of) -> gpu_session& { return sessions_.reference(of); });
  });
}

const std::vector<distribution>& cuda_judge::usable_of(prepared_gpu_task& prepared) {
  auto& known = prepared.usable[print_sizes(prepared.on_gpu.at())];
  if (known.empty()) known = usable_on_gpu(sessions_, prepared.on_gpu, prepared.random);
  return known;
}

// A Python module cannot be given other parameters than its constructor makes.
std::vector<distribution> cuda_judge::usable_of_modules(prepared_gpu_task& prepared) {
  std::vector<distribution> some = usable_of(prepared);
  std::erase(some, distribution::weights);
  return some;
}

void cuda_judge::draw_parameters_for(prepared_gpu_task& prepared, bool of_module) {
  const task* of = &prepared.of();
  const gpu_task::parameter_constructor construct = [this, of](std::uint64_t seed,
                                                               const gpu_tensors& to) {
    const auto deadline = std::chrono::steady_clock::now() + constructor_limit;
    const auto made = modules_.reference(*of).construct(seed, to, deadline);
    if (!made) throw reference_error(made.error().outcome, made.error().message);
  };
  prepared.on_gpu.construct_with(of_module ? construct : nullptr);
}

void cuda_judge::forget(const task& t) { prepared_.forget(t.id); }

verification_result cuda_judge::verify(const schema::Artifact::Reader& artifact, const task& t,
                                       std::uint64_t& seed) {
  prepared_gpu_task& prepared = prepare(t);
  time_budget budget;
  const bool is_module = is_python_module(view(artifact.getPython()));
  draw_parameters_for(prepared, is_module);
  const auto candidate = is_module ? modules_.open_candidate(artifact, t, budget)
                                   : sessions_.open_candidate(role::verifying, artifact, t, budget);
  if (seed == 0) seed = random_bits();
  if (!candidate) return {candidate.error(), 0, {}};
  gpu_trial trial(
      prepared.on_gpu, **candidate,
      [&] { return is_module ? usable_of_modules(prepared) : usable_of(prepared); }, is_module);
  verification_limits limits;
  limits.call = call_limit_;
  limits.loading = loading_limit;
  // A module may ask for algorithms to be tried, or try some itself.
  if (is_module || sessions_.candidate_tunes()) limits.tuning = tuning_limit;
  auto verified = verify_program(trial, kind(), seed, limits, budget);
  modules_.end_candidate();
  return verified;
}

// Finds the bias of the two processes for every case, before they have run the candidate.
program_result<void> cuda_judge::begin_timing(const schema::Artifact::Reader& artifact,
                                              const task& t,
                                              const std::vector<wanted_timing>& cases, int earlier,
                                              time_budget& budget, random_stream& random) {
  // A starting process would disturb the first measurement. Spares that are started later have not
  // been seen to.
  if (!std::exchange(has_timed_, true)) processes_.await_all();
  timed_ = {artifact, &prepare(t), earlier == 0 ? role::timing : role::confirming, &budget};
  const bool is_module = is_python_module(view(artifact.getPython()));
  draw_parameters_for(*timed_.prepared, is_module);
  if (is_module) return begin_timing_module(cases, random);
  if (earlier > 1) sessions_.replace_candidate(timed_.in);
  for (const wanted_timing& wanted : cases)
    calibrator_.calibrate(*timed_.prepared, *wanted.at, timed_.in, precision_for(wanted), random);
  return {};
}

// Each measurement of a module has a new process. The task's own module is timed before there is
// one.
program_result<void> cuda_judge::begin_timing_module(const std::vector<wanted_timing>& cases,
                                                     random_stream& random) {
  prepared_gpu_task& prepared = *timed_.prepared;
  for (const wanted_timing& wanted : cases) {
    case_facts& facts = calibrator_.facts_of(prepared, *wanted.at, random);
    if (facts.module_us > 0) continue;
    facts.module_us =
        calibrator_.time_alone(prepared, modules_.reference(prepared.of()), facts, random);
  }
  const auto candidate = modules_.open_candidate(timed_.artifact, prepared.of(), *timed_.budget);
  if (!candidate) return failed(candidate.error());
  timed_.module = *candidate;
  return {};
}

case_timing cuda_judge::time_module(const wanted_timing& wanted, random_stream& random) {
  prepared_gpu_task& prepared = *timed_.prepared;
  case_facts& facts = calibrator_.facts_of(prepared, *wanted.at, random);
  reverify_agreement_ = module_rules(facts.rules, facts.module_us).reverify_agreement;
  const std::vector<distribution> usable = usable_of_modules(prepared);
  const pair_facts pair{
      {0, uncertain_share + uncertain_us / facts.module_us}, facts.module_us, 0, false};
  case_timing timing;
  for (int attempt = 0; attempt < doubtful_attempts; ++attempt) {
    const std::string before = management_.throttled_by();
    timing = time_gpu_case({gpu_,
                            prepared.on_gpu,
                            *timed_.module,
                            modules_.reference(prepared.of()),
                            facts_,
                            facts,
                            pair,
                            usable,
                            wanted.expected_speedup,
                            wanted.is_screening,
                            {},
                            true,
                            true,
                            *timed_.budget},
                           random);
    timing.throttled = before.empty() ? management_.throttled_by() : before;
    const bool is_doubtful =
        !timing.throttled.empty() || is_slowed(timing.reference_us, pair.reference_us);
    if (timing.failure || !is_doubtful) return timing;
  }
  if (!timing.throttled.empty()) return timing;
  // The GPU itself may have become slower.
  modules_.end_candidate();
  facts.module_us =
      calibrator_.time_alone(prepared, modules_.reference(prepared.of()), facts, random);
  if (is_slowed(timing.reference_us, facts.module_us))
    timing.failure =
        program_failure{Outcome::UNSTABLE, "",
                        "the task's own module takes " + std::to_string(timing.reference_us) +
                            " us a call next to this program and " +
                            std::to_string(facts.module_us) + " us by itself"};
  return timing;
}

case_timing cuda_judge::time_case(const wanted_timing& wanted, random_stream& random) {
  if (timed_.module != nullptr) return time_module(wanted, random);
  // The case is calibrated again, because the calibration of a later case may have replaced a
  // process.
  const case_facts& facts =
      calibrator_.calibrate(*timed_.prepared, *wanted.at, timed_.in, precision_for(wanted), random);
  reverify_agreement_ = facts.rules.reverify_agreement;
  // There are no facts if a process has died since the calibration.
  const auto known = facts.pairs.find(sessions_.pair_of(timed_.in));
  const pair_facts pair = known != facts.pairs.end() ? known->second : pair_facts{};
  const auto candidate =
      sessions_.open_candidate(timed_.in, timed_.artifact, timed_.prepared->of(), *timed_.budget);
  if (!candidate) {
    case_timing timing;
    timing.failure = candidate.error();
    return timing;
  }
  return time_undisturbed(**candidate, wanted, facts, pair, random);
}

// Times a case, and up to twice again if something other than the candidate may have disturbed the
// timing.
case_timing cuda_judge::time_undisturbed(gpu_session& candidate, const wanted_timing& wanted,
                                         const case_facts& facts, const pair_facts& pair,
                                         random_stream& random) {
  gpu_task& on_gpu = timed_.prepared->on_gpu;
  on_gpu.choose(*wanted.at);
  const std::vector<distribution>& usable = usable_of(*timed_.prepared);
  const settings asked = parse_settings(view(timed_.artifact.getSettings()));
  const auto time_once = [&] {
    const std::string before = management_.throttled_by();
    case_timing once =
        time_gpu_case({gpu_, on_gpu, candidate, sessions_.reference(on_gpu.of()), facts_, facts,
                       pair, usable, wanted.expected_speedup, wanted.is_screening, asked,
                       sessions_.candidate_tunes(), false, *timed_.budget},
                      random);
    once.throttled = before.empty() ? management_.throttled_by() : before;
    return once;
  };
  case_timing timing = time_once();
  const auto is_slowed_here = [&] {
    return !timing.failure && !facts.is_launch_bound &&
           is_slowed(timing.reference_us, pair.reference_us);
  };
  const auto is_doubtful = [&] {
    return timing.has_unseen_time || is_slowed_here() ||
           (!timing.failure && !timing.throttled.empty());
  };
  for (int attempt = 1; attempt < doubtful_attempts && is_doubtful(); ++attempt)
    timing = time_once();
  if (is_slowed_here() && timing.throttled.empty())
    timing.failure =
        judge_slowed_reference(*wanted.at, as_clocked(pair.bias, timing.reference_us), random);
  return timing;
}

// Finds out whether the candidate has slowed down the reference, because the GPU itself may have
// become slower. The reference is timed against itself once more, in a process that has not run the
// candidate. If it is faster there, by its own process's clock, the candidate is the cause.
std::optional<program_failure> cuda_judge::judge_slowed_reference(const task_case& at,
                                                                  double reference_us,
                                                                  random_stream& random) {
  sessions_.replace_candidate(timed_.in);
  const case_facts& facts =
      calibrator_.calibrate(*timed_.prepared, at, timed_.in, bias_precision::fine, random);
  const pair_facts& alone = facts.pairs.at(sessions_.pair_of(timed_.in));
  const double alone_us = as_clocked(alone.bias, alone.reference_us);
  if (!is_slowed(reference_us, alone_us)) return std::nullopt;
  return program_failure{Outcome::UNSTABLE, "",
                         "the reference takes " + std::to_string(reference_us) +
                             " us a call next to this program and " + std::to_string(alone_us) +
                             " us next to itself"};
}

std::vector<std::string> cuda_judge::check_task(const task& t) {
  std::vector<std::string> lines;
  prepared_gpu_task& prepared = prepare(t);
  gpu_task& on_gpu = prepared.on_gpu;
  for (const task_case& at : t.cases) {
    if (!runs_on(at, kind())) continue;
    on_gpu.choose(at);
    const std::vector<distribution>& usable = usable_of(prepared);
    const agreement of_others = on_gpu.agreement_of_others(prepared.random);
    lines.push_back(
        describe(t, {at, on_gpu.expected_layouts(), usable, on_gpu.facts().possible(), of_others}));
  }
  return lines;
}

}  // namespace hone
