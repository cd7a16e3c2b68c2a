// The pool's side of `hone serve`: groups that clients hand in, and the known facts about them.
#include "storage/pool.hpp"

namespace hone {

std::optional<record<schema::Judgement>> pool::judgement(const group_id& group) const {
  const auto stored = db_.get<schema::RolloutGroup>(family::groups, key_of(group));
  if (!stored || (*stored)->getTokensRemoved()) return std::nullopt;
  using State = schema::Judgement::State;
  record_builder<schema::Judgement> known;
  group.store(known->initGroupId());
  known->setTaskId((*stored)->getDraw().getTaskId());
  known->setSubmittedMs((*stored)->getStartedMs());
  known->setClient((*stored)->getRequest().getClient());
  known->setState(book_.is_ready(group)     ? State::DONE
                  : book_.is_waiting(group) ? State::WAITING
                                            : State::WITHDRAWN);
  if (!book_.is_ready(group)) {
    known->initResults(0);
    return known.finish();
  }
  const auto rollouts = (*stored)->getRollouts();
  auto results = known->initResults(rollouts.size());
  for (unsigned i = 0; i < rollouts.size(); ++i) {
    const auto found = evaluation_of(**stored, rollouts[i]);
    if (found) {
      results.setWithCaveats(i, **found);
      // Without a score it says nothing to a client that wants one.
      results[i].setOutcome(outcome_for(**stored, **found));
      continue;
    }
    // Its judge was another version, before a restart.
    results[i].setVariantId(rollouts[i].getVariantId());
    results[i].setTaskId((*stored)->getDraw().getTaskId());
    results[i].setDeviceType((*stored)->getDraw().getDeviceType());
    results[i].initMeasurementId();
    results[i].setOutcome(Outcome::INFRASTRUCTURE);
    results[i].setMessage("another version of the judge judged it; hand it in again");
  }
  return known.finish();
}

std::vector<measurement_id> pool::withdraw(const group_id& group) {
  if (!book_.is_waiting(group)) return {};
  book_.withdraw({group});
  return ledger_.withdraw({group});
}

std::vector<measurement_id> pool::withdraw_expired(std::uint64_t now_ms) {
  const std::set<group_id> groups = book_.expired(now_ms);
  if (groups.empty()) return {};
  book_.withdraw(groups);
  return ledger_.withdraw(groups);
}

// Without its texts, a group is the lineage of its programs. Nobody can train on it, so it is
// marked as one without tokens.
void pool::forget_judged(std::uint64_t before_ms) {
  std::vector<record<schema::RolloutGroup>> old;
  for (const auto& [sequence, ready] : book_.ready(Stage::SERVICE)) {
    auto stored = db_.get<schema::RolloutGroup>(family::groups, key_of(ready.group));
    if (!stored || (*stored)->getStartedMs() >= before_ms) break;  // those behind it are younger
    old.push_back(*std::move(stored));
  }
  for (const auto& stored : old) {
    const group_id group(stored->getId());
    book_.mark_dropped(group);
    record_builder<schema::RolloutGroup> kept(*stored);
    remove_parts(kept.root(), {.tokens = true, .texts = true});
    db_.put(family::groups, key_of(group), copy_record<schema::RolloutGroup>(kept.root()));
  }
}

}  // namespace hone
