#include "evaluation/devices/judging_device.hpp"

#include <algorithm>
#include <cmath>

#include "evaluation/judge/verification.hpp"
#include "messages/clock.hpp"
#include "messages/ids.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t kept_tasks = 16;
constexpr int settling_attempts = 3;

double ms_since(steady::time_point begin) { return std::chrono::duration<double, std::milli>(steady::now() - begin).count(); }

program_failure of_reference(const reference_error& e) {
  return {Outcome::INFRASTRUCTURE, "", "the task's reference failed (" + std::string(name_of(e.outcome)) + "): " + e.what()};
}

std::size_t bytes_of(const std::vector<tensor_layout>& layouts) {
  std::size_t bytes = 0;
  for (const tensor_layout& layout : layouts) bytes += layout.bytes();
  return bytes;
}

void describe(schema::CaseTiming::Builder out, const task_case& at, const case_timing& timing) {
  out.setSizes(print_sizes(at));
  out.setReferenceUs(timing.reference_us);
  out.setCandidateUs(timing.candidate_us);
  out.setReferenceWallUs(timing.reference_wall_us);
  out.setCandidateWallUs(timing.candidate_wall_us);
  out.setSpeedup(timing.ratio.speedup);
  out.setIntervalLow(timing.ratio.range.low);
  out.setIntervalHigh(timing.ratio.range.high);
  out.setRounds(timing.rounds);
  out.setFloorUs(timing.floor_us);
  auto buckets = out.initBuckets(static_cast<unsigned>(timing.ratio.buckets.size()));
  for (unsigned i = 0; i < buckets.size(); ++i) buckets.set(i, timing.ratio.buckets[i]);
  auto baselines = out.initBaselines(1);
  baselines[0].setName("eager");
  baselines[0].setUs(timing.reference_us);
}

}  // namespace

struct judging_device::prepared_task {
  struct timed_case {
    std::unique_ptr<timed_inputs> inputs;
  };

  prepared_task(task copied, program_host& host)
      : of(std::move(copied)), oracle(of, host.open_oracle(of)), timed(of.cases.size()), random(random_bits()) {}

  // Input sets for timing a case.
  timed_case& timing_of(std::size_t index, std::size_t memory_bytes) {
    timed_case& one = timed[index];
    if (one.inputs != nullptr) return one;
    input_recipe recipe(oracle, of.cases[index]);
    const expected_outputs expected = oracle.expect(recipe.draw_inputs(distribution::declared, random.bits()), recipe.draw_parameters(random.bits()));
    const std::size_t bytes_a_call = bytes_of(recipe.input_layouts()) + total_bytes(expected.own);
    one.inputs = std::make_unique<timed_inputs>(recipe, affordable_sets(bytes_a_call, memory_bytes), random);
    return one;
  }

  task of;
  reference_oracle oracle;
  std::vector<timed_case> timed;
  random_stream random;
};

judging_device::judging_device(std::string name, std::string node, record<schema::DeviceType> type, std::unique_ptr<program_host> host)
    : name_(std::move(name)), node_(std::move(node)), type_(std::move(type)), host_(std::move(host)) {}

judging_device::~judging_device() = default;

std::string judging_device::kind() const {
  switch (type_->getKind()) {
    case schema::DeviceType::Kind::CPU: return "cpu";
    case schema::DeviceType::Kind::CUDA: return "cuda";
    case schema::DeviceType::Kind::SIMULATED: return "simulated";
  }
  return "";
}

judging_device::prepared_task& judging_device::prepare(const task& t) {
  const auto found = std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& p) { return p->of.id == t.id; });
  if (found != prepared_.end()) {
    prepared_.splice(prepared_.begin(), prepared_, found);
  } else {
    prepared_.push_front(std::make_unique<prepared_task>(t, *host_));
    if (prepared_.size() > kept_tasks) prepared_.pop_back();
  }
  return *prepared_.front();
}

void judging_device::forget(const task& t) {
  prepared_.remove_if([&](const auto& p) { return p->of.id == t.id; });
}

record<schema::Verdict> judging_device::verify(const schema::VerifyJob::Reader& job, const task& t, std::uint64_t seed) {
  const auto begin = steady::now();
  verification_result result;
  try {
    prepared_task& prepared = prepare(t);
    auto opened = host_->open_candidate(job.getArtifact(), t);
    if (seed == 0) seed = random_bits();
    if (auto* failed = std::get_if<program_failure>(&opened)) {
      result.failure = *failed;
    } else {
      result = verify_program(*std::get<std::unique_ptr<program_session>>(opened), prepared.oracle, kind(), seed, host_->limits());
    }
  } catch (const reference_error& e) {
    result.failure = of_reference(e);
    forget(t);
  } catch (const std::length_error& e) {
    result.failure = {Outcome::INFRASTRUCTURE, "", e.what()};
  }
  record_builder<schema::Verdict> verdict;
  verdict->setOutcome(result.failure.outcome);
  verdict->setKind(result.failure.kind);
  verdict->setMessage(result.failure.message);
  verdict->setRounds(result.rounds);
  verdict->setWorstElement(result.worst_element);
  verdict->setWorstRelativeL2(result.relative_l2);
  verdict->setSeed(seed);
  verdict->setVerifyMs(ms_since(begin));
  return verdict.finish();
}

struct judging_device::timed_program {
  program_failure failure{Outcome::OK, "", ""};
  std::vector<std::pair<const task_case*, case_timing>> timings;

  bool is_timed() const { return failure.outcome == Outcome::OK || failure.outcome == Outcome::UNSTABLE; }
  scored_ratio score() const {
    std::vector<ratio_summary> ratios;
    for (const auto& [at, timing] : timings) ratios.push_back(timing.ratio);
    return combine(ratios);
  }
};

// All timed cases, in one pair of fresh processes, up to the first that fails.
judging_device::timed_program judging_device::time_once(const schema::Artifact::Reader& artifact, const task& t, random_stream& random) {
  timed_program result;
  prepared_task& prepared = prepare(t);
  auto opened = host_->open_candidate(artifact, prepared.of);
  if (auto* failed = std::get_if<program_failure>(&opened)) {
    result.failure = *failed;
    return result;
  }
  const auto candidate = std::get<std::unique_ptr<program_session>>(std::move(opened));
  const auto reference = host_->open_reference(prepared.of);
  for (std::size_t i = 0; i < prepared.of.cases.size() && result.failure.outcome == Outcome::OK; ++i) {
    const task_case& at = prepared.of.cases[i];
    if (!at.timed || !runs_on(at, kind())) continue;
    auto& timed = prepared.timing_of(i, host_->timing_memory_bytes());
    timing_limits limits;
    limits.call = host_->limits().call;
    limits.floor_us_a_byte = host_->floor_us_a_byte();
    case_timing timing = time_case({*candidate, *reference, prepared.oracle}, *timed.inputs, host_->rules(), limits, random);
    result.failure = timing.failure;
    if (result.failure.outcome != Outcome::OK) result.failure.message += " (case " + print_sizes(at) + ")";
    result.timings.emplace_back(&at, std::move(timing));
  }
  if (result.timings.empty()) result.failure = {Outcome::INFRASTRUCTURE, "", "the task has no timed case for this kind of device"};
  return result;
}

// What does not settle is measured again in fresh processes: the noise may have been somebody else's.
judging_device::timed_program judging_device::time_until_settled(const schema::Artifact::Reader& artifact, const task& t, random_stream& random) {
  timed_program timed = time_once(artifact, t, random);
  for (int attempt = 1; attempt < settling_attempts && timed.failure.outcome == Outcome::UNSTABLE; ++attempt) timed = time_once(artifact, t, random);
  return timed;
}

// A score that had to be confirmed must agree with the first. Others' work on the machine comes in bursts that last for a whole
// measurement and slow down one side alone (doc/decisions/003), so where two disagree a third decides.
judging_device::timed_program judging_device::time_and_confirm(const schema::BenchmarkJob::Reader& job, const task& t, random_stream& random) {
  timed_program timed = time_until_settled(job.getArtifact(), t, random);
  if (!job.hasFirst()) return timed;
  const auto agree = [&](double a, double b) { return std::max(a / b, b / a) - 1 <= host_->rules().reverify_agreement; };
  const double first = job.getFirst().getScoreRaw();
  if (timed.failure.outcome != Outcome::OK || agree(first, timed.score().raw)) return timed;
  const double second = timed.score().raw;
  timed = time_until_settled(job.getArtifact(), t, random);
  if (timed.failure.outcome != Outcome::OK) return timed;
  const double third = timed.score().raw;
  if (!agree(first, third) && !agree(second, third)) {
    timed.failure = {Outcome::UNSTABLE, "", "measurements in fresh processes disagree: " + std::to_string(first) + ", " + std::to_string(second) + " and " + std::to_string(third)};
  }
  return timed;
}

record<schema::Measurement> judging_device::measure(const schema::BenchmarkJob::Reader& job, const task& t, std::uint64_t seed) {
  const auto begin = steady::now();
  record_builder<schema::Measurement> measurement;
  measurement->setId(job.getHeader().getMeasurementId());
  measurement->setDevice(name_);
  measurement->setNode(node_);
  measurement->setToolchain(host_->toolchain());
  measurement->setDriver(host_->driver());
  measurement->setJudgeVersion(judge_version);
  measurement->setStartedMs(unix_ms());
  measurement->setClockMhzBefore(host_->clock_mhz());
  if (seed == 0) seed = random_bits();
  timed_program timed;
  auto& [failure, timings] = timed;
  try {
    random_stream random(seed);
    timed = time_and_confirm(job, t, random);
  } catch (const reference_error& e) {
    failure = of_reference(e);
    forget(t);
  } catch (const std::length_error& e) {
    failure = {Outcome::INFRASTRUCTURE, "", e.what()};
  }

  if (timed.is_timed()) {
    const scored_ratio scored = timed.score();
    measurement->setScore(failure.outcome == Outcome::OK ? scored.score : 0);
    measurement->setScoreRaw(scored.raw);
    measurement->setIntervalLow(scored.range.low);
    measurement->setIntervalHigh(scored.range.high);
    auto cases = measurement->initCases(static_cast<unsigned>(timings.size()));
    for (unsigned i = 0; i < cases.size(); ++i) describe(cases[i], *timings[i].first, timings[i].second);
  }
  measurement->setOutcome(failure.outcome);
  measurement->setKind(failure.kind);
  measurement->setMessage(failure.message);
  measurement->setSeed(seed);
  measurement->setClockMhzAfter(host_->clock_mhz());
  measurement->setMeasureMs(ms_since(begin));
  return measurement.finish();
}

std::vector<std::string> judging_device::check_task(const task& t) {
  std::vector<std::string> lines;
  prepared_task& prepared = prepare(t);
  for (const task_case& at : prepared.of.cases) {
    if (!runs_on(at, kind())) continue;
    input_recipe recipe(prepared.oracle, at);
    std::string shapes;
    for (const distribution how : prepared.of.distributions) {
      const expected_outputs expected = prepared.oracle.expect(recipe.draw_inputs(how, prepared.random.bits()), recipe.draw_parameters(prepared.random.bits()));
      shapes.clear();
      for (const tensor_value& output : expected.own) shapes += (shapes.empty() ? "" : ", ") + print_layout(output.layout);
      shapes += expected.wide ? "" : " (compared in its own type)";
    }
    const std::string sizes = print_sizes(at);
    lines.push_back((sizes.empty() ? "the only sizes" : sizes) + std::string(at.timed ? " (timed)" : "") + ": " + shapes);
  }
  return lines;
}

}  // namespace hone
