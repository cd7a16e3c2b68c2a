#include "storage/attempts.hpp"

#include <cmath>
#include <cstdio>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "messages/plain_text.hpp"

namespace hone {
namespace {

constexpr std::size_t max_open = 8;  // per task and device type
constexpr std::size_t max_message_bytes = 600;
// A variant of at least this share of the best score is among the best.
constexpr double among_the_best = 0.9;

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

bool may_be_better(const attempt_book::judged_variant& one, double best) {
  const Outcome outcome = one.evaluation->getOutcome();
  if (one.variant->getProblem().size() > 0 || is_inconclusive(outcome)) return false;
  return outcome != Outcome::OK || one.evaluation->getScore() < among_the_best * best;
}

record<schema::Attempt> make_attempt(const attempt_book::judged_variant& one) {
  record_builder<schema::Attempt> attempt;
  const auto evaluation = *one.evaluation;
  attempt->setVariantId(one.variant->getId());
  attempt->setSettings(one.variant->getSettings());
  attempt->setCuda(one.variant->getCuda());
  attempt->setPython(one.variant->getPython());
  attempt->setOutcome(std::string(name_of(evaluation.getOutcome())));
  attempt->setMessage(std::string(first_bytes(view(evaluation.getMessage()), max_message_bytes)));
  attempt->setScore(evaluation.getOutcome() == Outcome::OK ? evaluation.getScore() : 0);
  attempt->setProfile(describe_profile(evaluation));
  return attempt.finish();
}

}  // namespace

void attempt_book::consider(const schema::RolloutGroup::Reader& group,
                            const std::vector<judged_variant>& judged, double best,
                            std::mt19937_64& random) {
  const auto draw = group.getDraw();
  const std::uint32_t next_turn = draw.getTurn() + 1;
  if (group.getOrigin() != schema::RolloutGroup::Origin::POLICY || next_turn >= turns_) return;
  std::vector<const judged_variant*> candidates;
  for (const judged_variant& one : judged) {
    if (may_be_better(one, best)) candidates.push_back(&one);
  }
  if (candidates.empty()) return;
  const std::size_t chosen =
      std::uniform_int_distribution<std::size_t>(0, candidates.size() - 1)(random);
  auto& open = open_[{task_id(draw.getTaskId()), draw.getDeviceType()}];
  open.push_back({make_attempt(*candidates[chosen]), next_turn});
  if (open.size() > max_open) open.pop_front();
}

std::optional<open_attempt> attempt_book::take(const task_id& task,
                                               const std::string& device_type) {
  const auto found = open_.find({task, device_type});
  if (found == open_.end() || found->second.empty()) return std::nullopt;
  open_attempt newest = std::move(found->second.back());
  found->second.pop_back();
  return newest;
}

std::string describe_profile(const schema::Evaluation::Reader& evaluation) {
  const auto measurement = measurement_of_score(evaluation);
  std::string text;
  for (const auto timing : measurement.getCases()) {
    const double us = timing.getCandidateUs();
    text += std::string(view(timing.getSizes())) + ": " + rounded(us) +
            " us a call, the reference " + rounded(timing.getReferenceUs()) + " us";
    if (timing.getBytes() > 0 && us > 0)
      text += ", " + rounded(static_cast<double>(timing.getBytes()) / us / 1e3) +
              " GB/s of arguments and results";
    text += "\n";
    for (const auto kernel : timing.getKernels()) {
      text += std::string(view(kernel.getName())) + ": " + std::to_string(kernel.getBlocks()) +
              " blocks of " + std::to_string(kernel.getThreads()) + " threads, " +
              std::to_string(kernel.getRegisters()) + " registers, occupancy " +
              rounded(kernel.getOccupancy());
      if (kernel.getSpilledBytes() > 0)
        text += ", " + std::to_string(kernel.getSpilledBytes()) + " bytes spilled";
      text += "\n";
    }
  }
  return text;
}

}  // namespace hone
