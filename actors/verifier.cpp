#include "actors/verifier.hpp"

#include <caf/all.hpp>

#include "actors/error_text.hpp"
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
  ++in_flight;
  if (job->getHeader().getVerified()) return take_verdict(job, known_verdict());
  self->request(device, job_limit, verify_atom_v, job)
      .then(
          [this, job](const verdict_record& verdict) {
            counts.processed();
            counts.add_busy_ms(verdict->getVerifyMs());
            take_verdict(job, verdict);
          },
          [this, job](const caf::error& error) {
            counts.failed();
            close(close_job(job->getHeader(), Outcome::INFRASTRUCTURE, "",
                            "the device failed: " + text_of(self->system(), error)));
          });
}

void verifier_state::take_verdict(const verify_job& job, const verdict_record& verdict) {
  if (verdict->getOutcome() != Outcome::OK || !job->getHeader().getTimed())
    return close(close_job(job->getHeader(), job->getArtifact(), *verdict));
  record_builder<schema::BenchmarkJob> next;
  next->setHeader(job->getHeader());
  next->setArtifact(job->getArtifact());
  next->setVerdict(*verdict);
  // The benchmarker has its own time limit.
  self->request(benchmarker, caf::infinite, measure_atom_v, next.finish())
      .then(
          [this, job](const std::vector<evaluation_record>& evaluations) {
            if (evaluations.empty()) return release(job);
            close(evaluations.front());
          },
          [this, job](const caf::error& error) {
            counts.failed();
            close(close_job(job->getHeader(), Outcome::INFRASTRUCTURE, "",
                            "the benchmarker failed: " + text_of(self->system(), error)));
          });
}

void verifier_state::close(const evaluation_record& evaluation) {
  --in_flight;
  self->send(wiring.verifies, close_atom_v, evaluation);
  end_if_left();
}

void verifier_state::release(const verify_job& job) {
  --in_flight;
  const measurement_id id(job->getHeader().getMeasurementId());
  self->send(wiring.verifies, done_atom_v, id.high, id.low);
  end_if_left();
}

void verifier_state::end_if_left() {
  if (is_leaving && in_flight == 0) self->quit();
}

void verifier_state::leave() {
  is_leaving = true;
  self->send(wiring.verifies, pull_atom_v, std::vector<std::string>{}, std::uint32_t{0});
  end_if_left();
}

verifier_actor::behavior_type verifier_behavior(
    verifier_actor::stateful_pointer<verifier_state> self, std::string name,
    const planned_device& of, device_actor device, benchmarker_actor benchmarker,
    node_wiring wiring) {
  auto& s = self->state;
  s.self = self;
  s.device = std::move(device);
  s.benchmarker = std::move(benchmarker);
  s.wiring = std::move(wiring);
  if (of.job_limit) s.job_limit = caf::duration(*of.job_limit);
  s.counts = activity(std::move(name), "verifier");
  // Not linked: the device outlives its workers when a node loses its run.
  self->monitor(s.device);
  self->link_to(s.benchmarker);
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
