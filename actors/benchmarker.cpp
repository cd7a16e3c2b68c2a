#include "actors/benchmarker.hpp"

#include <caf/all.hpp>

#include "actors/job_headers.hpp"
#include "evaluation/devices.hpp"

namespace hone {
namespace {

// Returns the job with a first measurement, which the next one must confirm.
benchmark_job with_first(const benchmark_job& job, const schema::Measurement::Reader& first) {
  record_builder<schema::BenchmarkJob> filled;
  filled->setHeader(job->getHeader());
  filled->setArtifact(job->getArtifact());
  filled->setVerdict(job->getVerdict());
  filled->setFirst(first);
  return filled.finish();
}

// If the variant was measured before, returns the job with the median of the earlier scores in
// place of a first measurement. Otherwise returns the job itself.
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
  ++in_flight;
  self->request(device, job_limit, measure_atom_v, job)
      .then(
          [this, job](const measurement_record& measurement) {
            --in_flight;
            counts.processed();
            counts.add_busy_ms(device::last_measure_ms(*measurement));
            finish(job);  // before the queue gets the job again under the same id
            conclude(job, measurement);
          },
          [this, job](const caf::error& error) {
            --in_flight;
            counts.failed();
            self->send(wiring.pool, close_atom_v,
                       close_job(job->getHeader(), Outcome::INFRASTRUCTURE, "",
                                 "the device failed: " + self->system().render(error)));
            finish(job);
          });
}

void benchmarker_state::conclude(const benchmark_job& job, const measurement_record& measurement) {
  if (job->hasFirst() ||
      !device::needs_confirmation(*measurement, job->getHeader().getBestScore())) {
    self->send(wiring.pool, close_atom_v, close_job(*job, *measurement));
    return;
  }
  self->send(wiring.benchmarks, put_atom_v, with_first(job, *measurement));
}

void benchmarker_state::finish(const benchmark_job& job) {
  const measurement_id id(job->getHeader().getMeasurementId());
  self->send(wiring.benchmarks, done_atom_v, id.high, id.low);
  if (is_leaving && in_flight == 0) self->quit();
}

void benchmarker_state::leave() {
  is_leaving = true;
  self->send(wiring.benchmarks, pull_atom_v, std::vector<std::string>{}, std::uint32_t{0});
  if (in_flight == 0) self->quit();
}

benchmarker_actor::behavior_type benchmarker_behavior(
    benchmarker_actor::stateful_pointer<benchmarker_state> self, const std::string& node,
    const planned_device& of, device_actor device, node_wiring wiring) {
  auto& s = self->state;
  s.self = self;
  s.device = std::move(device);
  s.wiring = std::move(wiring);
  s.job_limit = of.job_limit;
  s.counts = activity("benchmarker " + node + " " + of.name, "benchmarker");
  // Not linked: the device outlives its workers when a node loses its run.
  self->monitor(s.device);
  self->set_down_handler([self](const caf::down_msg& down) { self->quit(down.reason); });
  const std::string device_type(view(of.type->getName()));
  s.counts.set_device_type(device_type);
  self->send(
      s.wiring.benchmarks, pull_atom_v,
      std::vector<std::string>{
          device_type, single_device(node, of.measured_as.empty() ? of.name : of.measured_as)},
      of.credits);
  return {
      [self](const benchmark_job& job) { self->state.measure(job); },
      [self](leave_atom) { self->state.leave(); },
      [self](status_atom) { return self->state.counts.report(0, self->state.in_flight); },
  };
}

}  // namespace hone
