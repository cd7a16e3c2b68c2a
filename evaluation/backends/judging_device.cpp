#include "evaluation/backends/judging_device.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>

#include "evaluation/judge/variation.hpp"
#include "messages/clock.hpp"
#include "messages/ids.hpp"
#include "messages/plain_text.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr int settling_attempts = 3;

double ms_since(steady::time_point begin) {
  return std::chrono::duration<double, std::milli>(steady::now() - begin).count();
}

program_failure failure_of_reference(const reference_error& e) {
  return {Outcome::INFRASTRUCTURE, "",
          "the task's reference failed (" + std::string(name_of(e.outcome)) + "): " + e.what()};
}

// Calls end_timing() at the end of its scope.
class timing_scope {
 public:
  explicit timing_scope(program_judge& judge) : judge_(&judge) {}
  ~timing_scope() { judge_->end_timing(); }
  timing_scope(const timing_scope&) = delete;
  timing_scope& operator=(const timing_scope&) = delete;

 private:
  program_judge* judge_;
};

// Enters a failure, or `ok`, into a verdict or a measurement.
template <class Builder>
void describe(Builder& out, const std::optional<program_failure>& failure) {
  out->setOutcome(failure ? failure->outcome : Outcome::OK);
  if (!failure) return;
  out->setKind(failure->kind);
  out->setMessage(plain_text(failure->message));
}

void describe_baselines(schema::CaseTiming::Builder out, const case_timing& timing) {
  std::vector<case_timing::baseline> timed = {{"eager", timing.reference_us, {}}};
  std::vector<case_timing::baseline> missing;
  for (const auto& baseline : timing.baselines) (baseline.us ? timed : missing).push_back(baseline);
  auto times = out.initBaselines(static_cast<unsigned>(timed.size()));
  for (unsigned i = 0; i < times.size(); ++i) {
    times[i].setName(timed[i].name);
    times[i].setUs(*timed[i].us);
  }
  auto reasons = out.initMissingBaselines(static_cast<unsigned>(missing.size()));
  for (unsigned i = 0; i < reasons.size(); ++i) {
    reasons[i].setName(missing[i].name);
    reasons[i].setWhy(plain_text(missing[i].problem));
  }
}

void describe_kernels(schema::CaseTiming::Builder out, const case_timing& timing,
                      const schema::Artifact::Reader& artifact) {
  std::vector<case_timing::kernel_use> used = timing.kernels;
  std::erase_if(used, [&](const auto& k) { return k.kernel >= artifact.getKernels().size(); });
  auto kernels = out.initKernels(static_cast<unsigned>(used.size()));
  for (unsigned i = 0; i < kernels.size(); ++i) {
    const auto facts = artifact.getKernels()[used[i].kernel];
    kernels[i].setName(facts.getName());
    kernels[i].setBlocks(used[i].blocks);
    kernels[i].setThreads(used[i].threads);
    kernels[i].setRegisters(facts.getRegisters());
    kernels[i].setStaticSharedBytes(facts.getStaticSharedBytes());
    kernels[i].setDynamicSharedBytes(used[i].dynamic_shared_bytes);
    kernels[i].setLocalBytes(facts.getLocalBytes());
    kernels[i].setSpilledBytes(facts.getSpilledBytes());
    kernels[i].setOccupancy(used[i].occupancy);
  }
}

void describe_timing(schema::CaseTiming::Builder out, const task_case& at,
                     const case_timing& timing, const schema::Artifact::Reader& artifact) {
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
  describe_baselines(out, timing);
  out.setBurstUs(timing.burst_us);
  out.setBurstSpanUs(timing.burst_span_us);
  out.setBurstBusyUs(timing.burst_busy_us);
  out.setUnseenUs(timing.unseen_us);
  out.setThrottled(timing.throttled);
  out.setTracedUs(timing.traced_us);
  out.setBytes(timing.bytes);
  out.setFlops(timing.flops);
  describe_kernels(out, timing, artifact);
}

// Returns the speed-ups by case that a short measurement can confirm, or nothing: a score close to
// 1.00 needs a second whole measurement, and so does one that is known by its value alone.
std::vector<double> speedups_to_confirm(const schema::BenchmarkJob::Reader& job) {
  std::vector<double> speedups;
  if (!job.hasFirst() || device::is_close_to_equal(job.getFirst())) return speedups;
  for (const auto timing : job.getFirst().getCases()) speedups.push_back(timing.getSpeedup());
  return speedups;
}

}  // namespace

std::string describe(const task& t, const case_check& found) {
  std::string shapes;
  for (const tensor_layout& output : found.outputs)
    shapes += (shapes.empty() ? "" : ", ") + print_layout(output);
  const std::string sizes = print_sizes(found.at);
  std::ostringstream text;
  text.precision(2);
  text << (sizes.empty() ? "the only sizes" : sizes) << (found.at.timed ? " (timed)" : "") << ": "
       << shapes;
  if (!found.of_others.problem) {
    text << "; no result: the outputs for other inputs differ by no more than rounding";
  } else if (found.of_others.allowed_share > 0) {
    text << "; rounding allows " << found.of_others.allowed_share << " of a typical element";
  }
  std::string left_out;
  for (const distribution how : t.distributions) {
    const bool is_usable =
        std::find(found.usable.begin(), found.usable.end(), how) != found.usable.end();
    if (!is_usable && changes_any(t, how))
      left_out += (left_out.empty() ? "" : ", ") + std::string(name_of(how));
  }
  if (!left_out.empty()) text << "; not usable: " << left_out;
  if (const std::string missing = found.possible.missing(); !missing.empty())
    text << "; " << missing;
  if (const std::string names = fixed_tensors(t); !names.empty()) text << "; fixed: " << names;
  return text.str();
}

judging_device::judging_device(std::string name, std::string node, record<schema::DeviceType> type,
                               std::unique_ptr<program_judge> judge)
    : name_(std::move(name)),
      node_(std::move(node)),
      type_(std::move(type)),
      judge_(std::move(judge)) {}

scored_ratio judging_device::timed_program::score() const {
  std::vector<ratio_summary> ratios;
  for (const auto& [at, timing] : timings) ratios.push_back(timing.ratio);
  return combine(ratios);
}

std::size_t judging_device::timed_program::confirmed_cases() const {
  return static_cast<std::size_t>(std::count_if(
      timings.begin(), timings.end(), [](const auto& timed) { return timed.second.is_confirmed; }));
}

task_report judging_device::check_task(const task& t) {
  try {
    return {std::nullopt, judge_->check_task(t)};
  } catch (const reference_error& e) {
    return {program_failure{e.outcome, "", e.what()}, {}};
  }
}

record<schema::Verdict> judging_device::verify(const schema::VerifyJob::Reader& job, const task& t,
                                               std::uint64_t seed) {
  const auto begin = steady::now();
  verification_result result;
  try {
    result = judge_->verify(job.getArtifact(), t, seed);
  } catch (const reference_error& e) {
    result.failure = failure_of_reference(e);
    judge_->forget(t);
  } catch (const std::length_error& e) {
    result.failure = program_failure{Outcome::INFRASTRUCTURE, "", e.what()};
  }
  record_builder<schema::Verdict> verdict;
  describe(verdict, result.failure);
  verdict->setRounds(result.rounds);
  verdict->setWorstElement(result.errors.worst_element);
  verdict->setWorstRms(result.errors.rms);
  verdict->setSeed(seed);
  verdict->setVerifyMs(ms_since(begin));
  return verdict.finish();
}

judging_device::timed_program judging_device::time(const schema::Artifact::Reader& artifact,
                                                   const task& t, const timing_aim& aim,
                                                   int earlier, time_budget& budget,
                                                   random_stream& random) {
  timed_program result;
  std::vector<wanted_timing> cases;
  for (const task_case& at : t.cases) {
    if (at.timed && runs_on(at, judge_->kind())) cases.push_back({&at, {}, aim.is_screening});
  }
  if (aim.expected.size() == cases.size()) {
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i].expected_speedup = aim.expected[i];
  }
  if (cases.empty()) {
    result.failure = program_failure{Outcome::INFRASTRUCTURE, "",
                                     "the task has no timed case for this kind of device"};
    return result;
  }
  const timing_scope scope(*judge_);
  if (auto begun = judge_->begin_timing(artifact, t, cases, earlier, budget, random); !begun) {
    result.failure = begun.error();
    return result;
  }
  for (const wanted_timing& wanted : cases) {
    case_timing timing = judge_->time_case(wanted, random);
    result.failure = timing.failure;
    result.reverify_agreement = std::max(result.reverify_agreement, judge_->reverify_agreement());
    result.timings.emplace_back(*wanted.at, std::move(timing));
    if (result.failure) {
      result.failure->message += " (case " + print_sizes(*wanted.at) + ")";
      break;
    }
  }
  return result;
}

// Repeats a measurement that does not settle, up to twice and in other processes, because the noise
// may come from other work on the machine. Repetitions are measured in full.
judging_device::timed_program judging_device::time_until_settled(
    const schema::Artifact::Reader& artifact, const task& t, const timing_aim& aim, int& earlier,
    time_budget& budget, random_stream& random) {
  timed_program timed = time(artifact, t, aim, earlier++, budget, random);
  const auto is_to_be_repeated = [&] {
    return timed.failure ? timed.failure->outcome == Outcome::UNSTABLE
                         : timed.confirmed_cases() > 0 && !timed.is_confirmed();
  };
  for (int attempt = 1; attempt < settling_attempts && is_to_be_repeated(); ++attempt)
    timed = time(artifact, t, {}, earlier++, budget, random);
  return timed;
}

// Times once and as briefly as screening_rules() allow. Nothing is repeated or confirmed.
judging_device::timed_program judging_device::screen(const schema::Artifact::Reader& artifact,
                                                     const task& t, random_stream& random) {
  time_budget budget;
  return time(artifact, t, {.is_screening = true}, 0, budget, random);
}

// Measures, and confirms the job's first measurement if it has one. If the two disagree, a third
// decides, because bursts of other work on the machine can last for a whole measurement and slow
// down one side alone.
judging_device::timed_program judging_device::time_and_confirm(
    const schema::BenchmarkJob::Reader& job, const task& t, random_stream& random) {
  time_budget budget;
  int earlier = job.hasFirst() ? 1 : 0;
  timed_program timed =
      time_until_settled(job.getArtifact(), t, {speedups_to_confirm(job)}, earlier, budget, random);
  timed.first_counts = timed.is_confirmed();
  if (!job.hasFirst() || timed.failure || timed.first_counts) return timed;
  const auto agree = [&](double a, double b) {
    return std::max(a / b, b / a) - 1 <= timed.reverify_agreement;
  };
  const double first = job.getFirst().getScoreRaw();
  const double second = timed.score().raw;
  if (agree(first, second)) {
    // Chance may favor a score of 1, but no other.
    timed.first_counts = job.getFirst().getCases().size() > 0 &&
                         device::is_close_to_equal(job.getFirst()) &&
                         std::abs(first - 1) < std::abs(second - 1);
    return timed;
  }
  timed = time_until_settled(job.getArtifact(), t, {}, earlier, budget, random);
  if (timed.failure) return timed;
  const double third = timed.score().raw;
  if (!agree(first, third) && !agree(second, third)) {
    timed.failure =
        program_failure{Outcome::UNSTABLE, "",
                        "measurements in different processes disagree: " + std::to_string(first) +
                            ", " + std::to_string(second) + " and " + std::to_string(third)};
  }
  return timed;
}

// Returns the job's first measurement with the one that has confirmed it.
record<schema::Measurement> judging_device::confirmed_first(const schema::BenchmarkJob::Reader& job,
                                                            const timed_program& by,
                                                            double measure_ms) const {
  record_builder<schema::Measurement> measurement(job.getFirst());
  auto confirmation = measurement->initConfirmation();
  confirmation.setDevice(name_);
  confirmation.setScoreRaw(by.score().raw);
  std::uint32_t rounds = 0;
  for (const auto& [at, timing] : by.timings) rounds += timing.rounds;
  confirmation.setRounds(rounds);
  confirmation.setMeasureMs(measure_ms);
  return measurement.finish();
}

record<schema::Measurement> judging_device::measure(const schema::BenchmarkJob::Reader& job,
                                                    const task& t, std::uint64_t seed) {
  const auto begin = steady::now();
  record_builder<schema::Measurement> measurement;
  measurement->setId(job.getHeader().getMeasurementId());
  measurement->setDevice(name_);
  measurement->setNode(node_);
  measurement->setToolchain(judge_->toolchain());
  measurement->setDriver(judge_->driver());
  measurement->setJudgeVersion(judge_version);
  measurement->setStartedMs(unix_ms());
  measurement->setClockMhzBefore(judge_->clock_mhz());
  measurement->setTemperatureBefore(judge_->temperature_c());
  const bool is_screening = job.getHeader().getScreened();
  measurement->setScreened(is_screening);
  if (seed == 0) seed = random_bits();
  timed_program timed;
  try {
    random_stream random(seed);
    timed = is_screening ? screen(job.getArtifact(), t, random) : time_and_confirm(job, t, random);
  } catch (const reference_error& e) {
    timed.failure = failure_of_reference(e);
    judge_->forget(t);
  } catch (const std::length_error& e) {
    timed.failure = program_failure{Outcome::INFRASTRUCTURE, "", e.what()};
  }
  if (timed.first_counts) return confirmed_first(job, timed, ms_since(begin));

  if (timed.is_timed()) {
    const scored_ratio scored = timed.score();
    measurement->setScore(timed.failure ? 0 : scored.score);
    measurement->setScoreRaw(scored.raw);
    measurement->setIntervalLow(scored.range.low);
    measurement->setIntervalHigh(scored.range.high);
    auto cases = measurement->initCases(static_cast<unsigned>(timed.timings.size()));
    for (unsigned i = 0; i < cases.size(); ++i)
      describe_timing(cases[i], timed.timings[i].first, timed.timings[i].second, job.getArtifact());
  }
  describe(measurement, timed.failure);
  measurement->setSeed(seed);
  measurement->setClockMhzAfter(judge_->clock_mhz());
  measurement->setTemperatureAfter(judge_->temperature_c());
  measurement->setMeasureMs(ms_since(begin));
  return measurement.finish();
}

}  // namespace hone
