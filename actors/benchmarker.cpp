#include "actors/benchmarker.hpp"

#include <caf/all.hpp>

#include "actors/error_text.hpp"
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

// If the variant was measured before, returns the job with the median of the earlier scores
// instead of a first measurement. Otherwise returns the job itself.
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

void benchmarker_state::measure(const benchmark_job& given,
                                const std::function<void(const evaluations&)>& end) {
  const benchmark_job job = with_known_score(given);
  ++in_flight;
  const auto finished = [this, end](const evaluations& ended) {
    --in_flight;
    end(ended);
    end_if_left();
  };
  self->request(device, job_limit, measure_atom_v, job)
      .then(
          [this, job, finished](const measurement_record& measurement) {
            counts.processed();
            counts.add_busy_ms(device::last_measure_ms(*measurement));
            if (measurement->getClockMhzAfter() > 0)
              counts.set_number("clock_mhz", measurement->getClockMhzAfter());
            if (measurement->getTemperatureAfter() > 0)
              counts.set_number("temperature_c", measurement->getTemperatureAfter());
            finished(conclude(job, measurement));
          },
          [this, job, finished](const caf::error& error) {
            counts.failed();
            finished({close_job(job->getHeader(), Outcome::INFRASTRUCTURE, "",
                                "the device failed: " + text_of(self->system(), error))});
          });
}

benchmarker_state::evaluations benchmarker_state::conclude(const benchmark_job& job,
                                                           const measurement_record& measurement) {
  if (job->hasFirst() || !device::needs_confirmation(*measurement, job->getHeader().getBestScore()))
    return {close_job(*job, *measurement)};
  self->send(wiring.benchmarks, put_atom_v, with_first(job, *measurement));
  return {};
}

void benchmarker_state::leave() {
  is_leaving = true;
  self->send(wiring.benchmarks, pull_atom_v, std::vector<std::string>{}, std::uint32_t{0});
  end_if_left();
}

void benchmarker_state::end_if_left() {
  if (is_leaving && !has_verifier && in_flight == 0) self->quit();
}

benchmarker_actor::behavior_type benchmarker_behavior(
    benchmarker_actor::stateful_pointer<benchmarker_state> self, const std::string& node,
    const planned_device& of, device_actor device, node_wiring wiring) {
  auto& s = self->state;
  s.self = self;
  s.device = std::move(device);
  s.wiring = std::move(wiring);
  if (of.job_limit) s.job_limit = caf::duration(*of.job_limit);
  s.counts = activity("benchmarker " + node + " " + of.name, "benchmarker");
  // Not linked: the device outlives its workers when a node loses its run.
  self->monitor(s.device);
  self->set_down_handler([self](const caf::down_msg& down) { self->quit(down.reason); });
  self->set_exit_handler([self](const caf::exit_msg& ended) {
    if (ended.reason) return self->quit(ended.reason);
    self->state.has_verifier = false;
    self->state.end_if_left();
  });
  const std::string device_type(view(of.type->getName()));
  s.counts.set_device_type(device_type);
  self->send(
      s.wiring.benchmarks, pull_atom_v,
      std::vector<std::string>{
          device_type, single_device(node, of.measured_as.empty() ? of.name : of.measured_as)},
      of.credits);
  return {
      [self](const benchmark_job& job) {
        // A job of the queue has a first measurement, so this one ends it.
        self->state.measure(job, [self](const benchmarker_state::evaluations& ended) {
          self->send(self->state.wiring.benchmarks, close_atom_v, ended.front());
        });
      },
      [self](measure_atom, const benchmark_job& job) {
        auto promise = self->make_response_promise<benchmarker_state::evaluations>();
        self->state.measure(job, [promise](const benchmarker_state::evaluations& ended) mutable {
          promise.deliver(ended);
        });
        return promise;
      },
      [self](leave_atom) { self->state.leave(); },
      [self](status_atom) { return self->state.counts.report(0, self->state.in_flight); },
  };
}

}  // namespace hone
