#include "evaluation/evaluator.hpp"

#include "messages/ids.hpp"
#include "messages/plain_text.hpp"
#include "messages/versions.hpp"
#include "tasks/variant_document.hpp"

namespace hone {

record<schema::CompileJob> make_compile_job(const schema::Variant::Reader& variant,
                                            std::string_view device_type) {
  record_builder<schema::CompileJob> job;
  auto header = job->initHeader();
  random_id<measurement_id>().store(header.initMeasurementId());
  header.setVariantId(variant.getId());
  header.setTaskId(variant.getTaskId());
  header.setDeviceType(std::string(device_type));
  header.setAttempt(1);
  job->setSettings(variant.getSettings());
  job->setCuda(variant.getCuda());
  job->setPython(variant.getPython());
  return job.finish();
}

record<schema::Evaluation> evaluator::evaluate(const std::string& document, const task& t,
                                               std::uint64_t seed) {
  const auto variant = make_variant(t.id, document);
  const auto type = device_->type();
  record_builder<schema::Evaluation> evaluation;
  evaluation->setVariantId(variant->getId());
  evaluation->setTaskId(variant->getTaskId());
  evaluation->setDeviceType(type->getName());
  evaluation->setJudgeVersion(judge_version);
  evaluation->setAttempt(1);
  const auto close = [&](Outcome outcome, std::string_view kind, std::string_view message) {
    evaluation->setOutcome(outcome);
    evaluation->setKind(std::string(kind));
    evaluation->setMessage(plain_text(message));
    return evaluation.finish();
  };

  const auto job = make_compile_job(*variant, view(type->getName()));
  evaluation->setMeasurementId(job->getHeader().getMeasurementId());
  if (variant->getProblem().size() > 0)
    return close(Outcome::UNPARSABLE, "", view(variant->getProblem()));
  const auto compiled = compiler_.compile(*job, t, *type);
  if (!compiled)
    return close(compiled.error().outcome, compiled.error().kind, compiled.error().message);
  const auto& artifact = *compiled;
  evaluation->setCompileMs(artifact->getCompileMs());

  record_builder<schema::VerifyJob> verify;
  verify->setHeader(job->getHeader());
  verify->setArtifact(*artifact);
  const auto verdict = device_->verify(*verify.finish(), t, seed);
  evaluation->setVerdict(*verdict);
  if (verdict->getOutcome() != Outcome::OK)
    return close(verdict->getOutcome(), view(verdict->getKind()), view(verdict->getMessage()));

  record_builder<schema::BenchmarkJob> benchmark;
  benchmark->setHeader(job->getHeader());
  benchmark->setArtifact(*artifact);
  benchmark->setVerdict(*verdict);
  auto measurement = device_->measure(*benchmark.finish(), t, seed);
  if (device::needs_confirmation(*measurement, 0)) {
    benchmark->setFirst(*measurement);
    measurement = device_->measure(*benchmark.finish(), t, seed);
  }
  evaluation->initMeasurements(1).setWithCaveats(0, *measurement);
  evaluation->setScore(measurement->getOutcome() == Outcome::OK ? measurement->getScore() : 0);
  return close(measurement->getOutcome(), view(measurement->getKind()),
               view(measurement->getMessage()));
}

}  // namespace hone
