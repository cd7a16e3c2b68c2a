#include "actors/compiler.hpp"

#include <caf/all.hpp>

#include "actors/job_headers.hpp"
#include "network/thread_priority.hpp"

namespace hone {
namespace {

verify_job make_verify_job(const compile_job& job, const record<schema::Artifact>& artifact) {
  record_builder<schema::VerifyJob> next;
  next->setHeader(job->getHeader());
  next->setArtifact(*artifact);
  return next.finish();
}

}  // namespace

void compiler_state::compile(const compile_job& job) {
  const auto header = job->getHeader();
  const auto close = [&](Outcome outcome, const std::string& kind, const std::string& message) {
    self->send(wiring.compiles, close_atom_v, close_job(header, outcome, kind, message));
  };
  try {
    const auto t = tasks.find(header);
    if (t == nullptr) return close(Outcome::INFRASTRUCTURE, "", "this node does not have the task");
    const activity::span busy(counts, "compile");
    const auto artifact = compiler.compile(*job, *t, job->getDeviceType());
    if (artifact) {
      self->send(wiring.verifies, put_atom_v, make_verify_job(job, *artifact));
      const measurement_id id(header.getMeasurementId());
      self->send(wiring.compiles, done_atom_v, id.high, id.low);
    } else {
      close(artifact.error().outcome, artifact.error().kind, artifact.error().message);
    }
    counts.processed();
  } catch (const std::exception& e) {
    counts.failed();
    close(Outcome::INFRASTRUCTURE, "", e.what());
  }
}

compiler_actor::behavior_type compiler_behavior(
    compiler_actor::stateful_pointer<compiler_state> self, std::string name,
    std::shared_ptr<const task_table> tasks, node_wiring wiring, std::uint32_t credits) {
  auto& s = self->state;
  s.self = self;
  s.tasks = job_tasks(std::move(tasks));
  s.wiring = std::move(wiring);
  s.counts = activity(std::move(name), "compiler");
  let_messages_pass(thread_work::run);
  self->send(s.wiring.compiles, pull_atom_v, std::vector<std::string>{"*"}, credits);
  return {
      [self](const compile_job& job) { self->state.compile(job); },
      [self](leave_atom) { self->quit(); },
      [self](status_atom) { return self->state.counts.report(); },
  };
}

}  // namespace hone
