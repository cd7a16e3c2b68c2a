#include "actors/job_headers.hpp"

#include "messages/clock.hpp"
#include "messages/plain_text.hpp"
#include "messages/versions.hpp"

namespace hone {
namespace {

template <class Schema>
record<Schema> with_next_attempt(const record<Schema>& job) {
  record_builder<Schema> next(*job);
  next->getHeader().setAttempt(job->getHeader().getAttempt() + 1);
  return next.finish();
}

void fill(schema::Evaluation::Builder e, const schema::JobHeader::Reader& header) {
  e.setVariantId(header.getVariantId());
  e.setTaskId(header.getTaskId());
  e.setDeviceType(header.getDeviceType());
  e.setJudgeVersion(judge_version);
  e.setScope(header.getScope());
  e.setMeasurementId(header.getMeasurementId());
  e.setAttempt(header.getAttempt());
  e.setClosedMs(unix_ms());
}

void describe(schema::Evaluation::Builder e, const schema::Artifact::Reader& artifact) {
  e.setCompileMs(artifact.getCompileMs());
  if (artifact.hasProgramId()) e.setProgramId(artifact.getProgramId());
}

}  // namespace

compile_job next_attempt(const compile_job& job) { return with_next_attempt(job); }
verify_job next_attempt(const verify_job& job) { return with_next_attempt(job); }
benchmark_job next_attempt(const benchmark_job& job) { return with_next_attempt(job); }

evaluation_record close_job(const schema::JobHeader::Reader& header, schema::Outcome outcome,
                            const std::string& kind, const std::string& message) {
  record_builder<schema::Evaluation> e;
  fill(e.root(), header);
  e->setOutcome(outcome);
  e->setKind(kind);
  e->setMessage(plain_text(message));
  return e.finish();
}

evaluation_record close_job(const schema::JobHeader::Reader& header,
                            const schema::Artifact::Reader& artifact,
                            const schema::Verdict::Reader& verdict) {
  record_builder<schema::Evaluation> e;
  fill(e.root(), header);
  e->setOutcome(verdict.getOutcome());
  e->setKind(verdict.getKind());
  e->setMessage(verdict.getMessage());
  e->setVerdict(verdict);
  describe(e.root(), artifact);
  return e.finish();
}

evaluation_record close_job(const schema::BenchmarkJob::Reader& job,
                            const schema::Measurement::Reader& measurement) {
  record_builder<schema::Evaluation> e;
  fill(e.root(), job.getHeader());
  e->setOutcome(measurement.getOutcome());
  e->setKind(measurement.getKind());
  e->setMessage(measurement.getMessage());
  e->setVerdict(job.getVerdict());
  e->initMeasurements(1).setWithCaveats(0, measurement);
  e->setScore(measurement.getOutcome() == schema::Outcome::OK ? measurement.getScore() : 0);
  describe(e.root(), job.getArtifact());
  return e.finish();
}

}  // namespace hone
