#include "actors/verifier.hpp"

#include <caf/all.hpp>

#include "actors/job_headers.hpp"

namespace hone {
namespace {

// Verified before: the verdict is known, only its fields of then are not.
verdict_record known_verdict() {
  record_builder<schema::Verdict> verdict;
  verdict->setOutcome(schema::Outcome::OK);
  return verdict.finish();
}

}  // namespace

void verifier_state::verify(const verify_job& job) {
  if (job->getHeader().getVerified()) {
    hand_on(job, known_verdict());
    finish(job);
    return;
  }
  ++working_on;
  self->request(device, job_limit, verify_atom_v, job)
      .then(
          [this, job](const verdict_record& verdict) {
            --working_on;
            counts.processed();
            counts.add_busy_ms(verdict->getVerifyMs());
            hand_on(job, verdict);
            finish(job);
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

void verifier_state::hand_on(const verify_job& job, const verdict_record& verdict) {
  if (verdict->getOutcome() != schema::Outcome::OK) {
    self->send(pool, close_atom_v, close_job(job->getHeader(), job->getArtifact(), *verdict));
    return;
  }
  record_builder<schema::BenchmarkJob> next;
  next->setHeader(job->getHeader());
  next->setArtifact(job->getArtifact());
  next->setVerdict(*verdict);
  self->send(benchmarks, put_atom_v, next.finish());
}

void verifier_state::finish(const verify_job& job) {
  const measurement_id id(job->getHeader().getMeasurementId());
  self->send(source, done_atom_v, id.high, id.low);
}

verify_worker::behavior_type verifier(verify_worker::stateful_pointer<verifier_state> self,
                                      std::string name, std::string device_type,
                                      device_actor device, verify_queue source,
                                      benchmark_queue benchmarks, pool_actor pool,
                                      std::uint32_t credits, std::chrono::seconds job_limit) {
  auto& s = self->state;
  s.self = self;
  s.device = std::move(device);
  s.source = std::move(source);
  s.benchmarks = std::move(benchmarks);
  s.pool = std::move(pool);
  s.job_limit = job_limit;
  s.counts = activity(std::move(name), "verifier");
  self->link_to(s.device);  // without its device it is nothing
  self->send(s.source, pull_atom_v, std::vector<std::string>{std::move(device_type)}, credits);
  return {
      [self](const verify_job& job) { self->state.verify(job); },
      [self](status_atom) { return self->state.counts.report(0, self->state.working_on); },
  };
}

}  // namespace hone
