#include "evaluation/backends/simulated/simulated_device.hpp"

#include <cmath>
#include <thread>

#include "evaluation/judge/random_values.hpp"
#include "evaluation/judge/statistics.hpp"
#include "messages/clock.hpp"
#include "messages/ids.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

constexpr double pretended_reference_us = 1000;

class simulated_device final : public device {
 public:
  explicit simulated_device(simulated_device_options options)
      : options_(std::move(options)),
        name_(options_.device_name.empty() ? "simulated:" + options_.name : options_.device_name),
        type_(simulated_device_type(options_.name)) {}

  const record<schema::DeviceType>& type() const override { return type_; }
  const std::string& name() const override { return name_; }

  record<schema::Verdict> verify(const schema::VerifyJob::Reader& job, const task& /*t*/,
                                 std::uint64_t /*seed*/) override {
    wait_us(options_.verify_us);
    random_stream fate = fate_of(job.getHeader().getVariantId());
    const bool ok = static_cast<double>(fate.uniform()) < options_.ok_share;
    record_builder<schema::Verdict> verdict;
    verdict->setOutcome(ok ? Outcome::OK : Outcome::WRONG_RESULT);
    verdict->setMessage(ok ? "" : "simulated");
    verdict->setVerifyMs(static_cast<double>(options_.verify_us) / 1e3);
    return verdict.finish();
  }

  record<schema::Measurement> measure(const schema::BenchmarkJob::Reader& job, const task& /*t*/,
                                      std::uint64_t seed) override {
    const std::uint64_t started_ms = unix_ms();
    wait_us(options_.measure_us);
    random_stream fate = fate_of(job.getHeader().getVariantId());
    (void)fate.uniform();  // skips the number that verify() draws
    float z = 0;
    fate.fill_normal({&z, 1});
    if (seed == 0) seed = random_bits();
    float jitter = 0;
    random_stream(seed).fill_normal({&jitter, 1});
    const double raw =
        options_.median_speedup * std::exp(options_.spread * static_cast<double>(z) +
                                           options_.noise * static_cast<double>(jitter));
    record_builder<schema::Measurement> m;
    m->setId(job.getHeader().getMeasurementId());
    m->setOutcome(Outcome::OK);
    const double score = round_toward_one(raw);
    m->setScore(score);
    m->setScoreRaw(raw);
    m->setIntervalLow(std::min(score, raw * std::exp(-2 * options_.noise)));
    m->setIntervalHigh(std::max(score, raw * std::exp(2 * options_.noise)));
    auto timing = m->initCases(1)[0];
    timing.setReferenceUs(pretended_reference_us);
    timing.setCandidateUs(pretended_reference_us / raw);
    timing.setSpeedup(raw);
    timing.setIntervalLow(m->getIntervalLow());
    timing.setIntervalHigh(m->getIntervalHigh());
    timing.setRounds(1);
    m->setSeed(seed);
    m->setDevice(name_);
    m->setNode(options_.node);
    m->setToolchain("simulated");
    m->setJudgeVersion(judge_version);
    m->setMeasureMs(static_cast<double>(options_.measure_us) / 1e3);
    m->setStartedMs(started_ms);
    return m.finish();
  }

  task_report check_task(const task& /*t*/) override { return {}; }

 private:
  random_stream fate_of(schema::Id::Reader variant) const {
    const auto hash = content_id<variant_id>({to_string(variant_id(variant)), options_.name});
    return random_stream(hash.high);
  }
  static void wait_us(std::int64_t us) {
    if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
  }

  simulated_device_options options_;
  std::string name_;
  record<schema::DeviceType> type_;
};

}  // namespace

record<schema::DeviceType> simulated_device_type(const std::string& name) {
  record_builder<schema::DeviceType> type;
  type->setName("simulated-" + name);
  type->setKind(schema::DeviceType::Kind::SIMULATED);
  return type.finish();
}

std::unique_ptr<device> make_simulated_device(const simulated_device_options& options) {
  return std::make_unique<simulated_device>(options);
}

}  // namespace hone
