#include "evaluation/evaluate.hpp"

#include "messages/plain_text.hpp"
#include "messages/versions.hpp"

namespace hone {

record<schema::Evaluation> evaluate(device& on, const compiled_document& document, const task& t,
                                    evaluation_depth depth, std::uint64_t seed,
                                    const std::function<void(const char*)>& begins) {
  const auto& [variant, job, compiled] = document;
  record_builder<schema::Evaluation> evaluation;
  evaluation->setMeasurementId(job->getHeader().getMeasurementId());
  evaluation->setVariantId(variant->getId());
  evaluation->setTaskId(variant->getTaskId());
  evaluation->setDeviceType(job->getHeader().getDeviceType());
  evaluation->setJudgeVersion(judge_version);
  evaluation->setAttempt(1);
  const auto close = [&](Outcome outcome, std::string_view kind, std::string_view message) {
    evaluation->setOutcome(outcome);
    evaluation->setKind(std::string(kind));
    evaluation->setMessage(plain_text(message));
    return evaluation.finish();
  };

  if (!compiled)
    return close(compiled.error().outcome, compiled.error().kind, compiled.error().message);
  const auto& artifact = *compiled;
  evaluation->setCompileMs(artifact->getCompileMs());

  record_builder<schema::VerifyJob> verify;
  verify->setHeader(job->getHeader());
  verify->setArtifact(*artifact);
  if (begins) begins("verifying");
  const auto verdict = on.verify(*verify.finish(), t, seed);
  evaluation->setVerdict(*verdict);
  if (verdict->getOutcome() != Outcome::OK)
    return close(verdict->getOutcome(), view(verdict->getKind()), view(verdict->getMessage()));
  if (depth == evaluation_depth::verdict) return close(Outcome::OK, "", "");

  record_builder<schema::BenchmarkJob> benchmark;
  benchmark->setHeader(job->getHeader());
  benchmark->getHeader().setScreened(depth == evaluation_depth::screening);
  benchmark->setArtifact(*artifact);
  benchmark->setVerdict(*verdict);
  if (begins) begins("timing");
  auto measurement = on.measure(*benchmark.finish(), t, seed);
  if (device::needs_confirmation(*measurement, 0)) {
    benchmark->setFirst(*measurement);
    if (begins) begins("confirming");
    measurement = on.measure(*benchmark.finish(), t, seed);
  }
  evaluation->initMeasurements(1).setWithCaveats(0, *measurement);
  evaluation->setScore(measurement->getOutcome() == Outcome::OK ? measurement->getScore() : 0);
  return close(measurement->getOutcome(), view(measurement->getKind()),
               view(measurement->getMessage()));
}

}  // namespace hone
