#include "actors/compiler.hpp"

#include <caf/all.hpp>

#include "actors/job_headers.hpp"

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
  const auto t = tasks->find(task_id(header.getTaskId()));
  if (t == nullptr) {
    self->send(pool, close_atom_v,
               close_job(header, Outcome::INFRASTRUCTURE, "", "this node does not know the task"));
    return;
  }
  try {
    const activity::span busy(counts, "compile");
    const auto artifact = compiler.compile(*job, *t, job->getDeviceType());
    if (artifact) {
      self->send(verifiers, put_atom_v, make_verify_job(job, *artifact));
    } else {
      const program_failure& why = artifact.error();
      self->send(pool, close_atom_v, close_job(header, why.outcome, why.kind, why.message));
    }
    counts.processed();
  } catch (const std::exception& e) {
    counts.failed();
    self->send(pool, close_atom_v, close_job(header, Outcome::INFRASTRUCTURE, "", e.what()));
  }
}

compile_worker::behavior_type compiler(compile_worker::stateful_pointer<compiler_state> self,
                                       std::string name, std::shared_ptr<const task_table> tasks,
                                       compile_queue source, verify_queue verifiers,
                                       pool_actor pool, std::uint32_t credits) {
  auto& s = self->state;
  s.self = self;
  s.tasks = std::move(tasks);
  s.source = std::move(source);
  s.verifiers = std::move(verifiers);
  s.pool = std::move(pool);
  s.counts = activity(std::move(name), "compiler");
  self->send(s.source, pull_atom_v, std::vector<std::string>{"*"}, credits);
  return {
      [self](const compile_job& job) {
        self->state.compile(job);
        const measurement_id id(job->getHeader().getMeasurementId());
        self->send(self->state.source, done_atom_v, id.high, id.low);
      },
      [self](status_atom) { return self->state.counts.report(); },
  };
}

}  // namespace hone
