#include "actors/pool_requests.hpp"

#include <algorithm>
#include <utility>

#include "actors/timeouts.hpp"

namespace hone {
namespace {

bool is_expired(std::uint64_t since_ms, std::uint64_t now_ms,
                std::chrono::milliseconds limit = timeouts::pool_hold) {
  return since_ms + static_cast<std::uint64_t>(limit.count()) < now_ms;
}

// Returns a copy of a draw for another version, with a new id.
draw_record copy_for(const draw_schedule::assignment& what, const draw_record& draw) {
  record_builder<schema::Draw> copy(*draw);
  random_id<draw_id>().store(copy->getId());
  copy->setPolicyVersion(what.version);
  copy->setSamples(what.samples);
  return copy.finish();
}

}  // namespace

void pool_requests::add(reply<draw_record> answer, std::uint64_t now_ms, std::uint64_t generator) {
  draws_.push_back({std::move(answer), now_ms, generator});
}

void pool_requests::forget(std::uint64_t generator) {
  std::erase_if(draws_, [&](const waiting_draw& one) { return one.generator == generator; });
  schedule_->forget(generator);
}

void pool_requests::add(const batch_request& request, reply<batch_record> answer,
                        std::uint64_t now_ms) {
  batch_ = {request, std::move(answer), now_ms};
  trained_ = request.groups.without;
}

void pool_requests::refuse_expired(std::uint64_t now_ms) {
  while (!draws_.empty() && is_expired(draws_.front().since_ms, now_ms)) {
    draws_.front().answer(std::nullopt);
    draws_.pop_front();
  }
  if (batch_ && is_expired(batch_->since_ms, now_ms)) {
    batch_->answer(std::nullopt);
    batch_.reset();
  }
}

// Returns the limits on the groups of a batch. If no further group can become ready, a step may
// take more than an equal share of a task's groups.
pool::batch_request pool_requests::limits_for(const batch_request& request) const {
  pool::batch_request groups = request.groups;
  if (!request.is_even) return groups;
  const std::size_t ready = pool_->ready_groups(groups.stage, trained_);
  const bool is_exhausted =
      schedule_->is_exhausted(groups.stage, pool_->waiting_drawn_groups(), ready);
  groups.max_per_task = is_exhausted ? groups.at_most : schedule_->groups_per_task(groups.at_least);
  return groups;
}

std::uint64_t pool_requests::head_version() const {
  const version_record* head = pool_->versions().head_version();
  return head == nullptr ? 0 : (*head)->getVersion();
}

void pool_requests::abandon(Stage stage, const std::set<draw_id>& kept) {
  give_up(pool_->abandon(stage, kept));
}

void pool_requests::give_up(const std::vector<measurement_id>& measurements) {
  given_up_.insert(given_up_.end(), measurements.begin(), measurements.end());
}

void pool_requests::add(const group_id& group, reply<judgement_record> answer,
                        std::uint64_t until_ms) {
  judgements_.push_back({group, std::move(answer), until_ms});
}

void pool_requests::withdraw(const group_id& group) { give_up(pool_->withdraw(group)); }

void pool_requests::withdraw_expired(std::uint64_t now_ms) {
  give_up(pool_->withdraw_expired(now_ms));
}

void pool_requests::serve_judgements(std::uint64_t now_ms) {
  std::erase_if(judgements_, [&](const waiting_judgement& one) {
    if (pool_->is_waiting(one.group) && now_ms < one.until_ms) return false;
    one.answer(pool_->judgement(one.group));
    return true;
  });
}

// Ends a validation without an answer, and drops its groups.
void pool_requests::end_validation() {
  if (const auto open = std::exchange(validation_, std::nullopt)) open->answer(std::nullopt);
  abandon(Stage::VALIDATION);
}

std::size_t pool_requests::compare(const schema::ComparisonRequest::Reader& request) {
  end_validation();
  // Nothing is trained on what the stages before have left.
  for (const Stage stage : {Stage::SELF_SUPERVISED, Stage::CONTRASTIVE}) abandon(stage);
  comparison_draws_.clear();
  compared_at_ = head_version();
  compares_ = true;
  // Of device types that are not back yet, too.
  const std::vector<draw_record> made = pool_->comparison_draws(compared_at_);
  std::set<std::string> types;
  for (const draw_record& draw : made) types.emplace(view(draw->getDeviceType()));
  const std::size_t groups = schedule_->compare(request, types);
  leave_out(made);
  return groups;
}

void pool_requests::drop_if_late(const schema::RolloutGroup::Reader& group) {
  const Stage stage = stage_of(group);
  if (compares_ && (stage == Stage::SELF_SUPERVISED || stage == Stage::CONTRASTIVE)) abandon(stage);
}

// A comparison that was interrupted goes on where it was, if the configuration still plans it.
void pool_requests::leave_out(const std::vector<draw_record>& draws) {
  std::map<std::pair<std::uint64_t, std::size_t>, draw_record> made;
  for (const draw_record& draw : draws)
    made.try_emplace({draw->getPolicyVersion(), draw->getComparison()}, draw);
  std::set<draw_id> kept;
  schedule_->leave_out([&](const draw_schedule::assignment& one) {
    const auto found = made.find({one.version, one.comparison});
    if (found == made.end()) return false;
    const draw_record& draw = found->second;
    const draw_schedule::place where{task_id(draw->getTaskId()),
                                     std::string(view(draw->getDeviceType()))};
    if (where != one.where || draw->getArm() != one.arm) return false;
    comparison_draws_[one.comparison] = draw;
    kept.insert(draw_id(draw->getId()));
    return true;
  });
  abandon(Stage::COMPARISON, kept);
}

void pool_requests::validate(std::size_t tasks, reply<batch_record> answer, std::uint64_t now_ms) {
  end_validation();
  const std::size_t groups = schedule_->validate(head_version(), tasks);
  if (groups == 0) return answer(std::nullopt);
  validation_ = {std::move(answer), groups, now_ms};
}

// The groups are not needed any more when they are handed over: nothing is trained on them.
void pool_requests::serve_validation(std::uint64_t now_ms) {
  if (!validation_) return;
  const std::size_t ready = pool_->ready_groups(Stage::VALIDATION);
  const bool is_late = is_expired(validation_->since_ms, now_ms, timeouts::validation);
  if (ready < validation_->groups && !is_late) return;
  const auto answer = std::exchange(validation_, std::nullopt)->answer;
  answer(pool_->take({Stage::VALIDATION, 1, ready}));
  abandon(Stage::VALIDATION);
}

void pool_requests::serve_batch(std::uint64_t now_ms) {
  serve_validation(now_ms);
  if (!batch_) return;
  batch_->request.groups = limits_for(batch_->request);
  const std::map<std::string, std::uint64_t> before = pool_->dropped_groups();
  const auto batch = pool_->take(batch_->request.groups);
  std::map<std::string, std::uint64_t> dropped = pool_->dropped_groups();
  for (const auto& [type, count] : before) dropped[type] -= count;
  std::map<std::string, std::size_t> taken;
  if (batch) {
    for (const auto scored : (*batch)->getGroups())
      ++taken[scored.getGroup().getDraw().getDeviceType()];
  }
  for (const std::string& type : schedule_->device_types())
    schedule_->note_outcome(type, taken[type], dropped[type]);
  if (!batch) return;
  lag_ = mean_lag(**batch);
  batch_->answer(*batch);
  batch_.reset();
}

double pool_requests::mean_lag(const schema::TrainingBatch::Reader& batch) const {
  double total = 0;
  std::size_t count = 0;
  for (const auto scored : batch.getGroups()) {
    for (const auto rollout : scored.getGroup().getRollouts()) {
      for (const auto run : rollout.getVersions()) {
        total += pool_->versions().lag_of(run.getVersion()).value_or(0);
        ++count;
      }
    }
  }
  return count > 0 ? total / static_cast<double>(count) : 0;
}

draw_record pool_requests::make_draw(const draw_schedule::assignment& what) {
  const bool shares_draws = what.stage == Stage::COMPARISON;
  const auto shared = comparison_draws_.find(what.comparison);
  if (shares_draws && shared != comparison_draws_.end()) return copy_for(what, shared->second);
  draw_record draw =
      pool_->draw({what.where.task, what.where.device_type, what.stage, what.version, what.samples,
                   what.arm, shares_draws ? compared_at_ : what.version, what.comparison});
  if (shares_draws) comparison_draws_[what.comparison] = draw;
  return draw;
}

void pool_requests::serve_draws(std::uint64_t now_ms) {
  const version_record* head = pool_->versions().head_version();
  if (head == nullptr) return;
  const Stage stage = (*head)->getStage();
  refuse_expired(now_ms);
  std::map<std::string, std::size_t> waiting;
  for (const auto& [type, counts] : pool_->waiting_by_type()) waiting[type] = counts.all;
  const std::size_t drawn = pool_->waiting_drawn_groups();
  const std::size_t ready = pool_->ready_groups(stage, trained_);
  while (!draws_.empty()) {
    const draw_schedule::place* const compared = schedule_->next_held_out();
    if (compared != nullptr && pool_->awaits_corpus(compared->task, compared->device_type)) return;
    const auto what = schedule_->next(stage, (*head)->getVersion(), drawn, ready, waiting);
    if (!what) return;
    const draw_record draw = make_draw(*what);
    schedule_->issue(draw_id(draw->getId()), *what, now_ms, draws_.front().generator);
    draws_.front().answer(draw);
    draws_.pop_front();
  }
}

}  // namespace hone
