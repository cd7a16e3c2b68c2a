// The pool's side of training: which groups are ready for a step, and the versions that steps make.
#include <algorithm>

#include "storage/pool.hpp"

namespace hone {

// The learner hands weights to the generators before it commits their version. If it never does,
// the number must not be that of another version, so it is kept with the first group that names it.
void pool::note_versions(const schema::RolloutGroup::Reader& group) {
  const std::uint64_t before = unnamed_version_;
  for (const auto rollout : group.getRollouts()) {
    for (const auto run : rollout.getVersions())
      unnamed_version_ = std::max(unnamed_version_, run.getVersion() + 1);
  }
  if (unnamed_version_ > before) store_format();
}

std::uint32_t pool::max_lag_of(const std::string& device_type) const {
  std::uint32_t lag = options_.max_lag;
  // The texts that a name begins with are in the order of their lengths.
  for (const auto& [begin, its_lag] : options_.max_lag_of) {
    if (device_type.starts_with(begin)) lag = its_lag;
  }
  return lag;
}

void pool::drop_stale(const std::set<group_id>& without) {
  std::vector<group_id> stale;
  for (const auto& [stage, queue] : book_.ready()) {
    if (is_compared(stage) || stage == Stage::SFT) continue;  // the corpus has no version
    for (const auto& [sequence, ready] : queue) {
      if (!ready.has_version || without.contains(ready.group)) continue;
      // The learner hands weights to the generators before it commits their version.
      if (ready.oldest_version >= next_version_) continue;
      const auto lag = chain_.lag_of(ready.oldest_version);
      if (lag && *lag <= max_lag_of(ready.device_type)) continue;
      stale.push_back(ready.group);
      ++dropped_[ready.device_type];
    }
  }
  for (const group_id& group : stale) {
    book_.mark_dropped(group);
    remove_contents_of_dropped(db_, group, options_.retention);
  }
}

std::optional<record<schema::TrainingBatch>> pool::take(const batch_request& request) {
  drop_stale(request.without);
  if (book_.count_ready(request.stage, request.without) < request.at_least) return std::nullopt;
  const bool is_even = request.max_per_task > 0;
  std::map<task_id, std::size_t> older;  // number of older groups per task
  std::vector<std::pair<std::size_t, group_id>> candidates;
  for (const auto& [sequence, ready] : book_.ready(request.stage)) {
    if (request.without.contains(ready.group)) continue;
    const std::size_t turn = is_even ? older[ready.task]++ : 0;
    if (!is_even || turn < request.max_per_task) candidates.emplace_back(turn, ready.group);
  }
  if (candidates.size() < request.at_least) return std::nullopt;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  candidates.resize(std::min(candidates.size(), request.at_most));
  record_builder<schema::TrainingBatch> batch;
  random_id<batch_id>().store(batch->initId());
  batch->setStage(request.stage);
  auto groups = batch->initGroups(static_cast<unsigned>(candidates.size()));
  for (unsigned i = 0; i < groups.size(); ++i)
    groups.setWithCaveats(i, *score_group(candidates[i].second));
  return batch.finish();
}

std::vector<record<schema::Draw>> pool::comparison_draws(std::uint64_t compared_at) const {
  std::vector<record<schema::Draw>> draws;
  for (const auto& group : book_.open_groups(Stage::COMPARISON)) {
    const bool is_screened = options_.screens_comparisons && group->getTimed();
    if (group->getDraw().getComparedAt() != compared_at || group->getScreened() != is_screened)
      continue;
    bool is_judged = true;
    for (const auto rollout : group->getRollouts())
      is_judged = is_judged && evaluation_of(*group, rollout).has_value();
    if (is_judged || !book_.is_ready(group_id(group->getId())))
      draws.push_back(copy_record<schema::Draw>(group->getDraw()));
  }
  return draws;
}

std::vector<record<schema::ScoredGroup>> pool::trained_groups(Stage stage) const {
  std::vector<record<schema::ScoredGroup>> groups;
  if (!chain_.head()) return groups;
  for (const std::uint64_t version : chain_.path_to(*chain_.head())) {
    const auto step = db_.get<schema::TrainingStep>(family::steps, key_of(version));
    if (!step || (*step)->getStage() != stage) continue;
    for (const auto group : (*step)->getGroups()) groups.push_back(score_group(group_id(group)));
  }
  return groups;
}

void pool::commit_step(const record<schema::PolicyVersion>& version,
                       const record<schema::TrainingStep>& step) {
  const std::uint64_t number = version->getVersion();
  if (number < next_version_)
    throw pool_error("version " + std::to_string(number) + " has been used; the next is " +
                     std::to_string(next_version_));
  for (const auto id : step->getGroups()) {
    const group_id group(id);
    const auto progress = db_.get<schema::GroupProgress>(family::progress, key_of(group));
    if (!progress) throw pool_error("the group " + to_string(group) + " of a step is unknown");
    if ((*progress)->getState() == schema::GroupProgress::State::TRAINED &&
        chain_.is_ancestor((*progress)->getTrainedBy(), version->getParent())) {
      throw pool_error("the group " + to_string(group) + " was trained on by version " +
                       std::to_string((*progress)->getTrainedBy()) + " already");
    }
    book_.mark_trained(group, number);
  }
  db_.put(family::versions, key_of(number), version);
  db_.put(family::steps, key_of(number), step);
  chain_.add(version);
  chain_.set_head(number);
  remove_old_contents(db_, chain_, options_.retention);
  next_version_ = number + 1;
  unnamed_version_ = std::max(unnamed_version_, next_version_);
  store_format();
  commit();
}

void pool::choose_branch(std::uint64_t version) {
  if (chain_.find(version) == nullptr)
    throw pool_error(db_.folder().string() + ": there is no version " + std::to_string(version));
  // Steps to versions that are not ancestors of the chosen one give up their groups, except those
  // that a step along its path has consumed as well.
  std::set<group_id> kept;
  std::set<group_id> abandoned;
  for (const auto& [number, known] : chain_.all()) {
    const auto step = db_.get<schema::TrainingStep>(family::steps, key_of(number));
    if (!step) continue;
    for (const auto group : (*step)->getGroups())
      (chain_.is_ancestor(number, version) ? kept : abandoned).insert(group_id(group));
  }
  for (const group_id& group : abandoned) {
    if (kept.contains(group)) continue;
    const auto progress = db_.get<schema::GroupProgress>(family::progress, key_of(group));
    if (progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED)
      book_.give_back(group);
  }
  chain_.set_head(version);
  store_format();
  commit();
}

}  // namespace hone
