#include "storage/retention.hpp"

#include "messages/schema/training.capnp.h"
#include "storage/keys.hpp"

namespace hone {
namespace {

void remove_parts(database& db, const group_id& group, const group_parts& removed) {
  const auto stored = db.get<schema::RolloutGroup>(family::groups, key_of(group));
  if (!stored || (*stored)->getOrigin() == schema::RolloutGroup::Origin::CORPUS) return;
  db.put(family::groups, key_of(group), copy_without(**stored, removed));
}

// Removes parts of the groups of the step that is `age` steps older than the head.
void remove_of_step(database& db, const version_chain& chain, std::uint32_t age,
                    const group_parts& removed) {
  const auto head = chain.head();
  if (age == 0 || !head) return;
  std::uint64_t version = *head;
  for (std::uint32_t i = 0; i < age; ++i) {
    const std::uint64_t parent = (*chain.find(version))->getParent();
    if (parent == version) return;  // the root
    version = parent;
  }
  const auto step = db.get<schema::TrainingStep>(family::steps, key_of(version));
  if (!step) return;
  for (const auto group : (*step)->getGroups()) remove_parts(db, group_id(group), removed);
}

// Copies a draw, without the programs of its exemplars if asked to.
void copy_draw(const schema::Draw::Reader& from, schema::Draw::Builder to, bool without_programs) {
  to.setId(from.getId());
  to.setTaskId(from.getTaskId());
  to.setDeviceType(from.getDeviceType());
  to.setStage(from.getStage());
  to.setPolicyVersion(from.getPolicyVersion());
  to.setPopulation(from.getPopulation());
  to.setSeed(from.getSeed());
  to.setSamples(from.getSamples());
  to.setArm(from.getArm());
  to.setTurn(from.getTurn());
  if (!without_programs) {
    to.setExemplars(from.getExemplars());
    if (from.hasAttempt()) to.setAttempt(from.getAttempt());
    return;
  }
  if (from.hasAttempt()) {
    auto attempt = to.initAttempt();
    attempt.setVariantId(from.getAttempt().getVariantId());
    attempt.setOutcome(from.getAttempt().getOutcome());
    attempt.setScore(from.getAttempt().getScore());
  }
  auto exemplars = to.initExemplars(from.getExemplars().size());
  for (unsigned i = 0; i < exemplars.size(); ++i) {
    exemplars[i].setVariantId(from.getExemplars()[i].getVariantId());
    exemplars[i].setScore(from.getExemplars()[i].getScore());
  }
}

}  // namespace

void copy_without(const schema::RolloutGroup::Reader& group, const group_parts& removed,
                  record_builder<schema::RolloutGroup>& kept) {
  kept->setId(group.getId());
  kept->setOrigin(group.getOrigin());
  copy_draw(group.getDraw(), kept->initDraw(), removed.texts);
  if (!removed.texts) kept->setPrompt(group.getPrompt());
  kept->setTokensRemoved(removed.tokens || group.getTokensRemoved());
  kept->setStartedMs(group.getStartedMs());
  kept->setFinishedMs(group.getFinishedMs());
  kept->setTimed(group.getTimed());
  kept->setScreened(group.getScreened());
  if (removed.variants) {
    kept->initVariants(0);
  } else {
    kept->setVariants(group.getVariants());
  }
  if (!removed.tokens && !removed.texts) {
    kept->setRollouts(group.getRollouts());
    return;
  }
  auto rollouts = kept->initRollouts(group.getRollouts().size());
  for (unsigned i = 0; i < rollouts.size(); ++i) {
    const auto from = group.getRollouts()[i];
    rollouts[i].setId(from.getId());
    rollouts[i].setVariantId(from.getVariantId());
    rollouts[i].setVersions(from.getVersions());
    rollouts[i].setTruncated(from.getTruncated());
    rollouts[i].setText(removed.texts ? capnp::Text::Reader() : from.getText());
    if (removed.tokens) continue;
    rollouts[i].setTokens(from.getTokens());
    rollouts[i].setLogProbabilities(from.getLogProbabilities());
  }
}

record<schema::RolloutGroup> copy_without(const schema::RolloutGroup::Reader& group,
                                          const group_parts& removed) {
  record_builder<schema::RolloutGroup> kept;
  copy_without(group, removed, kept);
  return kept.finish();
}

void remove_contents_of_dropped(database& db, const group_id& group, const retention_options& o) {
  if (o.tokens > 0 || o.texts > 0)
    remove_parts(db, group, {.tokens = o.tokens > 0, .texts = o.texts > 0});
}

void remove_old_contents(database& db, const version_chain& chain, const retention_options& o) {
  remove_of_step(db, chain, o.tokens, {.tokens = true});
  remove_of_step(db, chain, o.texts, {.texts = true});
}

}  // namespace hone
