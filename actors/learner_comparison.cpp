// The learner's requests for samples that are not trained on: validations and the comparison.
#include "actors/learner.hpp"
#include "actors/timeouts.hpp"
#include "policy/training/validation.hpp"

namespace hone {

// Training goes on meanwhile. The next step reports the numbers.
void learner_state::validate() {
  const validation_options& wanted = options.plan.validation;
  if (wanted.every_s <= 0 || validating || !options.tasks || plan->stage() == Stage::COMPARISON)
    return;
  const auto now = self->system().clock().now();
  if (!validated_at) validated_at = now;  // nothing has been learned yet
  if (stopping || now - *validated_at < std::chrono::duration<double>(wanted.every_s)) return;
  validating = true;
  validated_at = now;
  self->request(pool, caf::infinite, validate_atom_v, wanted.tasks)
      .then(
          [this](const batch_record& batch) {
            validating = false;
            validated = describe_validation(*batch, *options.tasks);
            counts.set_number("validation_ok", validated["validation_ok"]);
            if (options.log) options.log(validation_text(validated));
          },
          [this](const caf::error&) { validating = false; });
}

// Requests a comparison, in which the policies before and after the contrastive stage, and for
// held-out tasks those that were kept on the way, write for the same draws and are judged afresh.
void learner_state::compare() {
  if (requested_stage == Stage::COMPARISON || comparing) return;
  comparing = true;
  const comparison_stage_options& wanted = options.plan.comparison;
  if (wanted.is_empty()) return end_without_comparison();
  record_builder<schema::ComparisonRequest> request;
  auto versions = request->initVersions(before_contrastive ? 2 : 0);
  if (before_contrastive) {
    versions.set(0, *before_contrastive);
    versions.set(1, head->getVersion());
    if (options.log)
      options.log("comparing version " + std::to_string(*before_contrastive) + " with version " +
                  std::to_string(head->getVersion()) + ": " +
                  std::to_string(wanted.samples + wanted.bare_samples + wanted.greedy_samples) +
                  " samples per task each");
  }
  kept_versions.insert(head->getVersion());
  auto held_out = request->initHeldOutVersions(static_cast<unsigned>(kept_versions.size()));
  unsigned i = 0;
  for (const std::uint64_t version : kept_versions) held_out.set(i++, version);
  request->setHeldOutSamples(wanted.held_out_samples);
  request->setHeldOutBareSamples(wanted.held_out_bare_samples);
  request->setTasks(wanted.tasks);
  request->setSamples(wanted.samples);
  request->setBareSamples(wanted.bare_samples);
  request->setGreedySamples(wanted.greedy_samples);
  self->request(pool, timeouts::commit_request, compare_atom_v, request.finish())
      .then(
          [this](std::uint32_t groups) {
            if (groups == 0) return end_without_comparison();
            comparison_groups = groups;
            request_batch(Stage::COMPARISON, groups, groups, false);
          },
          [this](const caf::error& e) {
            if (e != caf::sec::request_timeout) return fail_to("begin a comparison", e);
            comparing = false;  // no device is there: a node may bring one
            schedule_tick(timeouts::comparison_retry);
          });
}

void learner_state::end_without_comparison() {
  attempt_on_gpu([this] {
    if (!must_wait() && !finished) commit({Stage::COMPARISON, 1, {}}, {}, true);
  });
}

}  // namespace hone
