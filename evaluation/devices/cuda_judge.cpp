#include "evaluation/devices/cuda_judge.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "evaluation/compile/cuda_compiler.hpp"
#include "evaluation/judge/gpu/gpu_side.hpp"
#include "evaluation/judge/gpu/gpu_trial.hpp"
#include "messages/ids.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr const char* kind = "cuda";
constexpr std::size_t kept_tasks = 16;
constexpr auto open_limit = std::chrono::seconds(20);
constexpr auto compile_limit = std::chrono::seconds(60);
constexpr std::uint64_t largest_arena = 16ULL << 30U;
constexpr std::size_t max_sets = 9;        // a sample of eight calls behind one that does not count
constexpr double train_ns = 3e6;
constexpr std::size_t baseline_samples = 5;
constexpr int throttled_attempts = 3;
constexpr int calibration_attempts = 3;
constexpr double most_bias = 0.1;  // beyond that it is not luck: something is wrong with the process
// Twice the L2 cache would empty it; while more is written, the host gets ahead of the device by some 70 us, and what a busy host takes to
// start a call's first kernels does not count (doc/decisions/012).
constexpr std::uint64_t flush_over_l2 = 4;
// What the L2 cache can take, beside DRAM: generous, since only the impossible may lie below the floor.
constexpr double l2_over_dram = 5;
constexpr double unknown_gb_a_second = 20000;

// The judge's own kernels, compiled for this GPU.
std::pair<std::string, compiled_block> compile_kernels(const std::string& architecture) {
  cuda_compiler compiler;
  const auto& names = judge_gpu::kernel_names();
  auto compiled = compiler.compile(judge_gpu::kernel_source(), {names.begin(), names.end()}, {}, architecture, compile_limit);
  if (const auto* failed = std::get_if<compile_failure>(&compiled)) throw std::runtime_error("the judge's own kernels do not compile: " + failed->message);
  return {compiler.name(), std::get<compiled_block>(std::move(compiled))};
}

// The processor core that both of a GPU's processes launch from, which take turns: what is compared must not differ by its core. Counted from
// the last; -1: there are too few to spare one.
int core_for(int ordinal) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 4 + ordinal) return -1;
  int skip = ordinal;
  for (int core = CPU_SETSIZE - 1; core >= 0; --core) {
    if (CPU_ISSET(core, &set) && skip-- == 0) return core;
  }
  return -1;
}

// How another process finds the GPU that is this one's number `ordinal`.
std::string visible_device(int ordinal) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return std::to_string(ordinal);
  std::istringstream in(visible);
  std::string name;
  for (int i = 0; i <= ordinal && std::getline(in, name, ','); ++i) {
  }
  return name;
}

}  // namespace

struct cuda_judge::case_facts {
  gpu_side::limits limits;
  std::vector<case_timing::baseline> baselines;
  std::map<pid_t, process_bias> biases;  // by the candidate's process
};

struct cuda_judge::prepared_task {
  explicit prepared_task(gpu_task made) : right(std::move(made)) {}
  gpu_task right;
  random_stream random{random_bits()};
  std::map<std::string, case_facts> cases;  // by their sizes
};

cuda_judge::cuda_judge(const gpu_facts& facts, const cuda_judge_options& options)
    : facts_(facts),
      options_(options),
      core_(core_for(facts.ordinal)),
      management_(facts.bus_id),
      gpu_(facts, [&] {
        std::tie(toolchain_, kernels_) = compile_kernels(facts.architecture);
        return kernels_;
      }()),
      candidate_arena_(gpu_, options.arena_bytes > 0 ? options.arena_bytes : std::min(largest_arena, facts.memory_bytes / 6)),
      reference_arena_(gpu_, candidate_arena_.size()),
      candidates_{start(candidate_arena_), start(candidate_arena_)},
      spare_(start(candidate_arena_)),
      reference_(start(reference_arena_)) {
  for (gpu_process* process : {reference_.get(), candidates_[0].get(), candidates_[1].get(), spare_.get()}) process->await_ready();
}

cuda_judge::~cuda_judge() = default;

double cuda_judge::reverify_agreement() const { return gpu_timing_rules().reverify_agreement; }

std::unique_ptr<gpu_process> cuda_judge::start(const gpu_arena& arena) const {
  gpu_attachment attachment;
  attachment.handle = arena.handle();
  attachment.bytes = arena.size();
  attachment.head = arena.head_descriptor();
  attachment.tools = kernels_.code;
  for (const kernel_facts& k : kernels_.kernels) {
    if (k.name == "spoil_shared") attachment.spoil_symbol = k.symbol;
    if (k.name == "scramble") attachment.scramble_symbol = k.symbol;
  }
  attachment.core = core_;
  return std::make_unique<gpu_process>(visible_device(facts_.ordinal), attachment);
}

void cuda_judge::replace_candidate() {
  candidate_session_.reset();
  candidates_[current_] = spare_ != nullptr && spare_->alive() ? std::move(spare_) : start(candidate_arena_);
  candidate().await_ready();
  spare_ = start(candidate_arena_);
}

std::optional<program_failure> cuda_judge::open_candidate(const schema::Artifact::Reader& artifact, const task& t) {
  if (!candidate().alive()) replace_candidate();
  candidate_arena_.clean(gpu_);
  gpu_.finish();
  const auto opened = candidate().open({{std::string(view(artifact.getPython())), t.inputs.size(), t.parameters.size()}}, &artifact, parse_settings(view(artifact.getSettings())), clock::now() + open_limit);
  if (const auto* failed = std::get_if<session_failure>(&opened)) return program_failure{failed->outcome, "", failed->message};
  candidate_session_.emplace(gpu_, candidate_arena_, candidate());
  return std::nullopt;
}

gpu_session& cuda_judge::reference_of(const task& t, const settings& asked) {
  if (reference_ == nullptr || !reference_->alive()) {
    reference_session_.reset();
    open_reference_.reset();
    reference_ = start(reference_arena_);
    reference_->await_ready();
  }
  const std::pair<task_id, settings> wanted{t.id, asked};
  if (open_reference_ == wanted) return *reference_session_;
  open_reference_.reset();
  reference_arena_.forget(gpu_);
  gpu_.finish();
  const auto opened = reference_->open(reference_oracle::programs(t), nullptr, asked, clock::now() + open_limit);
  if (const auto* failed = std::get_if<session_failure>(&opened)) throw reference_error(failed->outcome, failed->message);
  open_reference_ = wanted;
  reference_session_.emplace(gpu_, reference_arena_, *reference_);
  return *reference_session_;
}

cuda_judge::prepared_task& cuda_judge::prepare(const task& t) {
  const auto found = std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& p) { return p->right.of().id == t.id; });
  if (found != prepared_.end()) {
    prepared_.splice(prepared_.begin(), prepared_, found);
  } else {
    prepared_.push_front(std::make_unique<prepared_task>(gpu_task(gpu_, t, [this, t]() -> gpu_session& { return reference_of(t, reference_settings_); })));
    if (prepared_.size() > kept_tasks) prepared_.pop_back();
  }
  return *prepared_.front();
}

void cuda_judge::forget(const task& t) {
  prepared_.remove_if([&](const auto& p) { return p->right.of().id == t.id; });
}

verification_result cuda_judge::verify(const schema::Artifact::Reader& artifact, const task& t, std::uint64_t& seed) {
  prepared_task& prepared = prepare(t);
  if (!candidate().alive()) replace_candidate();
  // What the processes differ by is found before this one has seen the variant.
  for (const task_case& at : prepared.right.of().cases) {
    if (at.timed && runs_on(at, kind)) learn(prepared, at, prepared.random);
  }
  const auto failed = open_candidate(artifact, t);
  if (seed == 0) seed = random_bits();
  if (failed) return {.failure = *failed};
  gpu_trial trial(gpu_, prepared.right, *candidate_session_);
  verification_limits limits;
  limits.call = options_.call_limit;
  return verify_program(trial, kind, seed, limits);
}

timed_program cuda_judge::time(const schema::Artifact::Reader& artifact, const task& t, random_stream& random, bool fresh) {
  timed_program result;
  prepared_task& prepared = prepare(t);
  if (fresh) current_ = 1 - current_;
  if (!candidate().alive()) replace_candidate();
  for (const task_case& at : prepared.right.of().cases) {
    if (!at.timed || !runs_on(at, kind) || result.failure.outcome != Outcome::OK) continue;
    const case_facts& facts = learn(prepared, at, random);
    if (auto failed = open_candidate(artifact, t)) {
      result.failure = *failed;
      return result;
    }
    case_timing timing = time_case(prepared, at, facts, random);
    for (int attempt = 1; attempt < throttled_attempts && timing.failure.outcome == Outcome::OK && management_.is_throttled(); ++attempt) timing = time_case(prepared, at, facts, random);
    result.failure = timing.failure;
    if (result.failure.outcome != Outcome::OK) result.failure.message += " (case " + print_sizes(at) + ")";
    result.timings.emplace_back(at, std::move(timing));
  }
  if (result.timings.empty()) result.failure = {Outcome::INFRASTRUCTURE, "", "the task has no timed case for this kind of device"};
  return result;
}

// Bytes that must be written over peak bandwidth: of the L2 cache for what fits into it, of DRAM for the rest.
double cuda_judge::floor_us(std::uint64_t bytes) const {
  const double dram = facts_.memory_gb_a_second > 0 ? facts_.memory_gb_a_second : unknown_gb_a_second;
  const auto cached = static_cast<double>(std::min(bytes, facts_.l2_bytes));
  return (cached / (l2_over_dram * dram) + (static_cast<double>(bytes) - cached) / dram) / 1e3;
}

const cuda_judge::case_facts& cuda_judge::learn(prepared_task& prepared, const task_case& at, random_stream& random) {
  gpu_task& right = prepared.right;
  right.choose(at);
  const auto [found, is_new] = prepared.cases.try_emplace(print_sizes(at));
  case_facts& facts = found->second;
  if (is_new) {
    right.draw_parameters(random.bits());
    right.draw_inputs(distribution::declared, random.bits());
    right.expect();
    const std::uint64_t bytes_a_call = std::max<std::uint64_t>(1, total_bytes(right.inputs().layouts) + 3 * right.expected_bytes());
    facts.limits = {std::clamp<std::uint64_t>(candidate_arena_.size() / 3 / bytes_a_call, 1, max_sets), flush_over_l2 * facts_.l2_bytes, options_.call_limit};
    facts.baselines = time_baselines(prepared, facts, random);
  }
  for (int attempt = 0; !facts.biases.contains(candidate().pid()); ++attempt) {
    if (attempt > 0) replace_candidate();
    const process_bias bias = find_bias(prepared, facts, random);
    if (std::abs(bias.log_ratio) < most_bias || attempt == calibration_attempts) facts.biases[candidate().pid()] = bias;
  }
  return facts;
}

// The reference in both processes. Where a process has its kernels' code is a matter of luck that stays with it, and a short kernel that
// fetches it from the other end of the chip takes some 0.1 us longer (doc/decisions/012).
process_bias cuda_judge::find_bias(prepared_task& prepared, const case_facts& facts, random_stream& random) {
  const task& t = prepared.right.of();
  candidate_arena_.forget(gpu_);
  gpu_.finish();
  const auto opened = candidate().open(reference_oracle::programs(t), nullptr, {}, clock::now() + open_limit);
  if (const auto* failed = std::get_if<session_failure>(&opened)) throw reference_error(failed->outcome, failed->message);
  gpu_session twin(gpu_, candidate_arena_, candidate());
  gpu_side reference(gpu_, prepared.right, reference_of(t, reference_settings_), facts.limits, random, true);
  gpu_side same(gpu_, prepared.right, twin, facts.limits, random, false);
  const case_timing timing = time_pair(same, reference, gpu_calibration_rules(), random, [] {});
  if (timing.failure.outcome != Outcome::OK) throw reference_error(timing.failure.outcome, timing.failure.message);
  return bias_of(timing);
}

case_timing cuda_judge::time_case(prepared_task& prepared, const task_case& at, const case_facts& facts, random_stream& random) {
  gpu_task& right = prepared.right;
  right.choose(at);
  const process_bias bias = facts.biases.at(candidate().pid());  // the process may be gone behind this
  case_timing timing;
  try {
    gpu_side reference(gpu_, right, reference_of(right.of(), reference_settings_), facts.limits, random, true);
    gpu_side candidate(gpu_, right, *candidate_session_, facts.limits, random, false);
    std::uint64_t least_bytes = ~std::uint64_t{0};
    const auto check = [&] {
      const std::size_t call = random.below(candidate.last_calls());
      const std::size_t set = candidate.set_of(call);
      right.draw_inputs(distribution::declared, candidate.contents_of(set));
      right.expect();
      verification_result totals;
      const program_failure wrong = check_gpu_call(gpu_, right, *candidate_session_, call, set, totals);
      if (wrong.outcome != Outcome::OK) throw timing_failure{{wrong.outcome, wrong.kind, wrong.message + " (in a timed call)"}};
      // Memory that it shares with arguments, as the reference does, was there before.
      const bool writes = std::none_of(right.aliases().begin(), right.aliases().end(), [](const shared_memory_of_output& shared) { return shared.what != shared_memory_of_output::with::output; });
      least_bytes = std::min<std::uint64_t>(least_bytes, writes ? candidate_session_->output_bytes(call) : 0);
    };
    timing = time_pair(candidate, reference, gpu_timing_rules(), random, check);
    timing.baselines = facts.baselines;
    if (timing.log_ratios.empty()) return timing;
    take_off(bias, timing);
    if (timing.failure.outcome != Outcome::OK) return timing;
    timing.floor_us = floor_us(least_bytes);
    // CUPTI makes every launch slower, so one train is for it and another for how fast calls follow each other.
    const three_clocks train = candidate.train(train_ns, timing.candidate_us * 1e3, false);
    check();
    const three_clocks traced = candidate.train(train_ns, timing.candidate_us * 1e3, true);
    const three_clocks of_reference = reference.train(train_ns, timing.reference_us * 1e3, false);
    const auto us_a_call = [](double ns, const three_clocks& t) { return ns / 1e3 / static_cast<double>(t.calls); };
    timing.train_us = us_a_call(train.device_ns, train);
    timing.candidate_wall_us = us_a_call(train.wall_ns, train);
    timing.reference_wall_us = us_a_call(of_reference.wall_ns, of_reference);
    timing.train_span_us = us_a_call(traced.span_ns, traced);
    timing.traced_us = us_a_call(traced.device_ns, traced);
    for (const kernel_launch& launch : candidate_session_->launches()) {
      const double occupancy = facts_.threads_a_multiprocessor > 0 ? static_cast<double>(launch.blocks_a_multiprocessor) * launch.threads / facts_.threads_a_multiprocessor : 0;
      timing.kernels.push_back({launch.kernel, launch.threads, launch.blocks, launch.dynamic_shared_bytes, occupancy});
    }
    timing.bytes = total_bytes(right.inputs().layouts) + total_bytes(right.parameters().layouts) + right.expected_bytes();
    if (timing.candidate_us < timing.floor_us) {
      timing.failure = {Outcome::CHEATING, "impossible_time", "a call takes " + std::to_string(timing.candidate_us) + " us, writing its outputs alone needs " + std::to_string(timing.floor_us) + " us"};
    } else if (const auto wrong = find_disagreement(train, traced, timing.candidate_us * 1e3)) {
      timing.failure = *wrong;
    }
  } catch (const timing_failure& e) {
    timing.failure = e.why;
  }
  return timing;
}

std::vector<case_timing::baseline> cuda_judge::time_baselines(prepared_task& prepared, const case_facts& facts, random_stream& random) {
  std::vector<std::pair<std::string, settings>> ways(1);
  ways[0].first = "graph";
  ways[0].second.cuda_graph = true;
  if (prepared.right.of().relaxed) {
    ways.emplace_back("tf32+autotune", settings{});
    ways[1].second.tf32 = true;
    ways[1].second.cudnn_benchmark = true;
  }
  std::vector<case_timing::baseline> baselines;
  for (const auto& [name, asked] : ways) {
    try {
      reference_settings_ = asked;
      gpu_session& session = reference_of(prepared.right.of(), asked);
      gpu_side side(gpu_, prepared.right, session, facts.limits, random, true);
      side.take_parameters(random.bits());
      side.sample(facts.limits.sets);
      std::vector<double> us;
      for (std::size_t i = 0; i < baseline_samples; ++i) {
        for (const double ns : side.sample(facts.limits.sets)) us.push_back(ns / 1e3);
      }
      baselines.push_back({name, median(us)});
    } catch (const timing_failure&) {
      // A reference that reads a tensor's contents cannot be captured: there is no such baseline.
    } catch (const reference_error&) {
    }
  }
  reference_settings_ = {};
  return baselines;
}

std::vector<std::string> cuda_judge::check_task(const task& t) {
  std::vector<std::string> lines;
  prepared_task& prepared = prepare(t);
  gpu_task& right = prepared.right;
  for (const task_case& at : t.cases) {
    if (!runs_on(at, kind)) continue;
    right.choose(at);
    for (const distribution how : t.distributions) {
      right.draw_parameters(prepared.random.bits());
      right.draw_inputs(how, prepared.random.bits());
      right.expect();
    }
    lines.push_back(describe_case(at, right.expected_layouts(), right.has_wide()));
  }
  return lines;
}

}  // namespace hone
