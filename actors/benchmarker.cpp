#include "actors/benchmarker.hpp"

#include <caf/all.hpp>

#include "actors/job_headers.hpp"
#include "evaluation/device.hpp"

namespace hone {
namespace {

// The job with a measurement to hold the next one against.
benchmark_job with_first(const benchmark_job& job, const schema::Measurement::Reader& first) {
  record_builder<schema::BenchmarkJob> filled;
  filled->setHeader(job->getHeader());
  filled->setArtifact(job->getArtifact());
  filled->setVerdict(job->getVerdict());
  filled->setFirst(first);
  return filled.finish();
}

// The median of earlier measurements stands in for a first one.
benchmark_job with_known_score(const benchmark_job& job) {
  const double known = job->getHeader().getKnownScore();
  if (known <= 0 || job->hasFirst()) return job;
  record_builder<schema::Measurement> earlier;
  earlier->setId(job->getHeader().getMeasurementId());
  earlier->setScore(known);
  earlier->setScoreRaw(known);
  return with_first(job, *earlier.finish());
}

}  // namespace

void benchmarker_state::measure(const benchmark_job& given) {
  const benchmark_job job = with_known_score(given);
  ++working_on;
  self->request(device, job_limit, measure_atom_v, job)
      .then(
          [this, job](const measurement_record& measurement) {
            --working_on;
            counts.processed();
            counts.add_busy_ms(measurement->getMeasureMs());
            finish(job);  // before the job may come back under the same id
            conclude(job, measurement);
          },
          [this, job](const caf::error& error) {
            --working_on;
            counts.failed();
            self->send(pool, close_atom_v,
                       close_job(job->getHeader(), schema::Outcome::INFRASTRUCTURE, "",
                                 "the device failed: " + self->system().render(error)));
            finish(job);
          });
}

void benchmarker_state::conclude(const benchmark_job& job, const measurement_record& measurement) {
  if (job->hasFirst() ||
      !device::needs_confirmation(*measurement, job->getHeader().getBestScore())) {
    self->send(pool, close_atom_v, close_job(*job, *measurement));
    return;
  }
  self->send(source, put_atom_v, with_first(job, *measurement));
}

void benchmarker_state::finish(const benchmark_job& job) {
  const measurement_id id(job->getHeader().getMeasurementId());
  self->send(source, done_atom_v, id.high, id.low);
}

benchmark_worker::behavior_type benchmarker(
    benchmark_worker::stateful_pointer<benchmarker_state> self, std::string name,
    std::string device_type, std::string device_name, device_actor device, benchmark_queue source,
    pool_actor pool, std::uint32_t credits, std::chrono::seconds job_limit) {
  auto& s = self->state;
  s.self = self;
  s.device = std::move(device);
  s.source = std::move(source);
  s.pool = std::move(pool);
  s.job_limit = job_limit;
  s.counts = activity(std::move(name), "benchmarker");
  self->link_to(s.device);
  self->send(s.source, pull_atom_v,
             std::vector<std::string>{std::move(device_type), "device " + device_name}, credits);
  return {
      [self](const benchmark_job& job) { self->state.measure(job); },
      [self](status_atom) { return self->state.counts.report(0, self->state.working_on); },
  };
}

}  // namespace hone
