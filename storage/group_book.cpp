#include "storage/group_book.hpp"

#include <algorithm>
#include <utility>

#include "messages/measurements.hpp"

namespace hone {

Stage stage_of(const schema::RolloutGroup::Reader& group) {
  return group.getOrigin() == schema::RolloutGroup::Origin::CORPUS ? Stage::SFT
                                                                   : group.getDraw().getStage();
}

Outcome outcome_for(const schema::RolloutGroup::Reader& group,
                    const schema::Evaluation::Reader& known) {
  const bool lacks_score = known.getOutcome() == Outcome::OK && !has_score(known);
  return lacks_score && group.getTimed() ? Outcome::UNSTABLE : known.getOutcome();
}

namespace {

group_book::ready_group summarize(const schema::RolloutGroup::Reader& group,
                                  std::uint64_t sequence) {
  group_book::ready_group ready;
  ready.sequence = sequence;
  ready.group = group_id(group.getId());
  ready.task = task_id(group.getDraw().getTaskId());
  ready.device_type = view(group.getDraw().getDeviceType());
  ready.stage = stage_of(group);
  for (const auto rollout : group.getRollouts()) {
    for (const auto run : rollout.getVersions()) {
      ready.oldest_version =
          ready.has_version ? std::min(ready.oldest_version, run.getVersion()) : run.getVersion();
      ready.has_version = true;
    }
  }
  return ready;
}

}  // namespace

group_book::group_book(database& db, std::map<group_id, waiting_group> waiting,
                       std::uint64_t next_sequence)
    : db_(&db), waiting_(std::move(waiting)), next_sequence_(next_sequence) {
  for (auto& [id, group] : waiting_) {
    const auto stored = db.get<schema::RolloutGroup>(family::groups, key_of(id));
    if (stored) {
      group.stage = stage_of(**stored);
      group.task = task_id((*stored)->getDraw().getTaskId());
      group.expires_ms = (*stored)->getRequest().getExpiresMs();
    }
    count_waiting(group, 1);
  }
  db.scan<schema::ReadyGroup>(
      family::ready, "", [&](std::string_view key, const record<schema::ReadyGroup>& entry) {
        const group_id id(entry->getGroupId());
        const auto group = db.get<schema::RolloutGroup>(family::groups, key_of(id));
        if (!group)
          throw pool_error(db.folder().string() + ": the ready group " + to_string(id) +
                           " is missing");
        append(summarize(**group, number_from_key(key)));
        next_sequence_ = std::max(next_sequence_, number_from_key(key) + 1);
        return true;
      });
}

record_builder<schema::GroupProgress> group_book::progress_of(const group_id& group) const {
  const auto known = db_->get<schema::GroupProgress>(family::progress, key_of(group));
  return known ? record_builder<schema::GroupProgress>(**known)
               : record_builder<schema::GroupProgress>();
}

void group_book::note_copies(const group_id& group, const std::vector<std::uint32_t>& copies) {
  record_builder<schema::GroupProgress> progress = progress_of(group);
  auto list = progress->initCopies(static_cast<unsigned>(copies.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, copies[i]);
  db_->put(family::progress, key_of(group), progress.finish());
}

void group_book::store(const group_id& group, schema::GroupProgress::State state,
                       std::uint64_t sequence, std::uint64_t trained_by) {
  record_builder<schema::GroupProgress> progress = progress_of(group);
  progress->setState(state);
  progress->setReadySequence(sequence);
  progress->setTrainedBy(trained_by);
  db_->put(family::progress, key_of(group), progress.finish());
}

void group_book::count_waiting(const waiting_group& group, int by) {
  waiting_counts& counts = waiting_by_type_[group.device_type];
  counts.all += static_cast<std::size_t>(by);
  counts.drawn += static_cast<std::size_t>(group.is_drawn() ? by : 0);
  if (group.is_drawn()) return;
  const auto corpus = waiting_corpus_.try_emplace({group.device_type, group.task}, 0).first;
  corpus->second += static_cast<std::size_t>(by);
  if (corpus->second == 0) waiting_corpus_.erase(corpus);
}

bool group_book::begin(const schema::RolloutGroup::Reader& group, std::size_t waits_for) {
  if (waits_for == 0) {
    make_ready(group);
    return true;
  }
  const group_id id(group.getId());
  waiting_[id] = {waits_for, std::string(view(group.getDraw().getDeviceType())), stage_of(group),
                  task_id(group.getDraw().getTaskId()), group.getRequest().getExpiresMs()};
  count_waiting(waiting_[id], 1);
  store(id, schema::GroupProgress::State::PENDING, 0, 0);
  return false;
}

std::optional<record<schema::RolloutGroup>> group_book::release(const group_id& group) {
  const auto found = waiting_.find(group);
  if (found == waiting_.end() || --found->second.missing > 0) return std::nullopt;
  count_waiting(found->second, -1);
  waiting_.erase(found);
  auto stored = db_->get<schema::RolloutGroup>(family::groups, key_of(group));
  if (!stored)
    throw pool_error(db_->folder().string() + ": the group " + to_string(group) + " is missing");
  make_ready(**stored);
  return stored;
}

bool group_book::awaits_corpus(const std::vector<group_id>& groups) const {
  return std::any_of(groups.begin(), groups.end(), [this](const group_id& group) {
    const auto found = waiting_.find(group);
    return found != waiting_.end() && !found->second.is_drawn();
  });
}

const group_book::ready_queue& group_book::ready(Stage stage) const {
  static const ready_queue none;
  const auto found = ready_.find(stage);
  return found == ready_.end() ? none : found->second;
}

std::size_t group_book::count_ready(Stage stage, const std::set<group_id>& without) const {
  std::size_t left_out = 0;
  for (const group_id& group : without) {
    const auto place = ready_places_.find(group);
    left_out += place != ready_places_.end() && place->second.stage == stage ? 1 : 0;
  }
  return ready(stage).size() - left_out;
}

void group_book::append(ready_group group) {
  ready_places_[group.group] = {group.stage, group.sequence};
  ready_[group.stage].emplace(group.sequence, std::move(group));
}

void group_book::make_ready(const schema::RolloutGroup::Reader& group) {
  const ready_group entry = summarize(group, next_sequence_++);
  append(entry);
  record_builder<schema::ReadyGroup> stored;
  entry.group.store(stored->initGroupId());
  db_->put(family::ready, key_of(entry.sequence), stored.finish());
  store(entry.group, schema::GroupProgress::State::READY, entry.sequence, 0);
}

void group_book::leave_ready(const group_id& group) {
  const auto found = ready_places_.find(group);
  if (found == ready_places_.end()) return;
  db_->remove(family::ready, key_of(found->second.sequence));
  ready_[found->second.stage].erase(found->second.sequence);
  ready_places_.erase(found);
}

std::vector<record<schema::RolloutGroup>> group_book::open_groups(Stage stage) const {
  std::vector<record<schema::RolloutGroup>> open;
  const auto add = [&](const group_id& group) {
    auto stored = db_->get<schema::RolloutGroup>(family::groups, key_of(group));
    if (stored) open.push_back(*std::move(stored));
  };
  for (const auto& [sequence, one] : ready(stage)) add(one.group);
  for (const auto& [group, waits] : waiting_) {
    if (waits.stage == stage) add(group);
  }
  return open;
}

std::set<group_id> group_book::abandon(Stage stage, const std::set<draw_id>& kept) {
  std::set<group_id> waited;
  for (const auto& stored : open_groups(stage)) {
    const group_id group(stored->getId());
    if (kept.contains(draw_id(stored->getDraw().getId()))) continue;
    if (is_waiting(group)) {
      waited.insert(group);
    } else {
      mark_dropped(group);
    }
  }
  withdraw(waited);
  return waited;
}

std::set<group_id> group_book::expired(std::uint64_t now_ms) const {
  std::set<group_id> groups;
  for (const auto& [group, waits] : waiting_) {
    if (waits.expires_ms > 0 && waits.expires_ms <= now_ms) groups.insert(group);
  }
  return groups;
}

void group_book::withdraw(const std::set<group_id>& groups) {
  for (const group_id& group : groups) {
    const auto waiting = waiting_.find(group);
    if (waiting == waiting_.end()) continue;
    count_waiting(waiting->second, -1);
    waiting_.erase(waiting);
    mark_dropped(group);
  }
}

void group_book::mark_trained(const group_id& group, std::uint64_t version) {
  leave_ready(group);
  store(group, schema::GroupProgress::State::TRAINED, 0, version);
}

void group_book::mark_dropped(const group_id& group) {
  leave_ready(group);
  store(group, schema::GroupProgress::State::DROPPED, 0, 0);
}

void group_book::give_back(const group_id& group) {
  const auto stored = db_->get<schema::RolloutGroup>(family::groups, key_of(group));
  if (!stored) return;
  if ((*stored)->getTokensRemoved()) return mark_dropped(group);
  make_ready(**stored);
}

}  // namespace hone
