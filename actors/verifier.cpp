#include "actors/verifier.hpp"

#include <caf/all.hpp>

#include "actors/job_headers.hpp"

namespace hone {
namespace {

// Returns the verdict on an artifact that was verified earlier, with the outcome alone.
verdict_record known_verdict() {
  record_builder<schema::Verdict> verdict;
  verdict->setOutcome(Outcome::OK);
  return verdict.finish();
}

}  // namespace

void verifier_state::verify(const verify_job& job) {
  if (job->getHeader().getVerified()) {
    forward(job, known_verdict());
    finish(job);
    return;
  }
  ++in_flight;
  self->request(device, job_limit, verify_atom_v, job)
      .then(
          [this, job](const verdict_record& verdict) {
            --in_flight;
            counts.processed();
            counts.add_busy_ms(verdict->getVerifyMs());
            forward(job, verdict);
            finish(job);
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

void verifier_state::forward(const verify_job& job, const verdict_record& verdict) {
  if (verdict->getOutcome() != Outcome::OK || !job->getHeader().getTimed()) {
    self->send(wiring.pool, close_atom_v,
               close_job(job->getHeader(), job->getArtifact(), *verdict));
    return;
  }
  record_builder<schema::BenchmarkJob> next;
  next->setHeader(job->getHeader());
  next->setArtifact(job->getArtifact());
  next->setVerdict(*verdict);
  self->send(wiring.benchmarks, put_atom_v, next.finish());
}

void verifier_state::finish(const verify_job& job) {
  const measurement_id id(job->getHeader().getMeasurementId());
  self->send(wiring.verifies, done_atom_v, id.high, id.low);
  if (is_leaving && in_flight == 0) self->quit();
}

void verifier_state::leave() {
  is_leaving = true;
  self->send(wiring.verifies, pull_atom_v, std::vector<std::string>{}, std::uint32_t{0});
  if (in_flight == 0) self->quit();
}

verifier_actor::behavior_type verifier_behavior(
    verifier_actor::stateful_pointer<verifier_state> self, std::string name,
    const planned_device& of, device_actor device, node_wiring wiring) {
  auto& s = self->state;
  s.self = self;
  s.device = std::move(device);
  s.wiring = std::move(wiring);
  s.job_limit = of.job_limit;
  s.counts = activity(std::move(name), "verifier");
  // Not linked: the device outlives its workers when a node loses its run.
  self->monitor(s.device);
  self->set_down_handler([self](const caf::down_msg& down) { self->quit(down.reason); });
  const std::string device_type(view(of.type->getName()));
  s.counts.set_device_type(device_type);
  self->send(s.wiring.verifies, pull_atom_v, std::vector<std::string>{device_type}, of.credits);
  return {
      [self](const verify_job& job) { self->state.verify(job); },
      [self](leave_atom) { self->state.leave(); },
      [self](status_atom) { return self->state.counts.report(0, self->state.in_flight); },
  };
}

}  // namespace hone
