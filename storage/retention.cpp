#include "storage/retention.hpp"

#include "messages/schema/training.capnp.h"
#include "storage/keys.hpp"

namespace hone {
namespace {

void remove_parts_of(database& db, const group_id& group, const group_parts& removed) {
  const auto stored = db.get<schema::RolloutGroup>(family::groups, key_of(group));
  if (!stored || (*stored)->getOrigin() == schema::RolloutGroup::Origin::CORPUS) return;
  record_builder<schema::RolloutGroup> kept(**stored);
  remove_parts(kept.root(), removed);
  db.put(family::groups, key_of(group), copy_record<schema::RolloutGroup>(kept.root()));
}

// Removes parts of the groups of the step that is `age` steps older than the head.
void remove_of_step(database& db, const version_chain& chain, std::uint32_t age,
                    const group_parts& removed) {
  const auto head = chain.head();
  if (age == 0 || !head) return;
  std::uint64_t version = *head;
  for (std::uint32_t i = 0; i < age; ++i) {
    const auto* known = chain.find(version);
    if (known == nullptr) return;
    const std::uint64_t parent = (*known)->getParent();
    if (parent == version) return;  // the root
    version = parent;
  }
  const auto step = db.get<schema::TrainingStep>(family::steps, key_of(version));
  if (!step) return;
  for (const auto group : (*step)->getGroups()) remove_parts_of(db, group_id(group), removed);
}

void remove_programs(schema::Draw::Builder draw) {
  for (auto exemplar : draw.getExemplars()) {
    exemplar.disownSettings();
    exemplar.disownCuda();
    exemplar.disownPython();
  }
  if (!draw.hasAttempt()) return;
  auto attempt = draw.getAttempt();
  attempt.disownSettings();
  attempt.disownCuda();
  attempt.disownPython();
  attempt.disownMessage();
  attempt.disownProfile();
}

}  // namespace

void remove_parts(schema::RolloutGroup::Builder group, const group_parts& removed) {
  if (removed.variants) group.initVariants(0);
  if (removed.texts) {
    group.disownPrompt();
    remove_programs(group.getDraw());
  }
  if (removed.tokens) group.setTokensRemoved(true);
  for (auto rollout : group.getRollouts()) {
    if (removed.texts) rollout.disownText();
    if (!removed.tokens) continue;
    rollout.disownTokens();
    rollout.disownLogProbabilities();
  }
}

void remove_contents_of_dropped(database& db, const group_id& group, const retention_options& o) {
  if (o.tokens > 0 || o.texts > 0)
    remove_parts_of(db, group, {.tokens = o.tokens > 0, .texts = o.texts > 0});
}

void remove_old_contents(database& db, const version_chain& chain, const retention_options& o) {
  remove_of_step(db, chain, o.tokens, {.tokens = true});
  remove_of_step(db, chain, o.texts, {.texts = true});
}

}  // namespace hone
