#include "storage/evaluation_ledger.hpp"

#include <algorithm>
#include <utility>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "messages/schema/storage.capnp.h"

namespace hone {
namespace {

std::uint32_t measurement_count(const std::optional<record<schema::Evaluation>>& known) {
  return known ? (*known)->getMeasurements().size() : 0;
}

// A score is always that of one measurement, and lies in its interval.
double median_score(capnp::List<schema::Measurement>::Reader measurements) {
  std::vector<double> scores;
  for (const auto m : measurements) {
    if (m.getOutcome() == Outcome::OK) scores.push_back(m.getScore());
  }
  return lower_median(std::move(scores));
}

// Returns the known evaluation with one more result merged in. A timed call with a wrong result
// outweighs every earlier result.
record<schema::Evaluation> merge(const std::optional<record<schema::Evaluation>>& known,
                                 const schema::Evaluation::Reader& result, std::uint64_t now_ms) {
  record_builder<schema::Evaluation> out;
  out->setVariantId(result.getVariantId());
  out->setTaskId(result.getTaskId());
  out->setDeviceType(result.getDeviceType());
  out->setJudgeVersion(result.getJudgeVersion());
  out->setScope(result.getScope());
  out->setMeasurementId(result.getMeasurementId());
  out->setAttempt(result.getAttempt());
  out->setCompileMs(result.getCompileMs());
  out->setClosedMs(now_ms);
  if (result.hasProgramId()) {
    out->setProgramId(result.getProgramId());
  } else if (known && (*known)->hasProgramId()) {
    out->setProgramId((*known)->getProgramId());
  }
  // A variant that is measured again is not verified again, so its first verdict stays.
  const auto has_passed = [](const schema::Evaluation::Reader& e) {
    return e.hasVerdict() && e.getVerdict().getOutcome() == Outcome::OK;
  };
  if (known && (*known)->hasVerdict() &&
      (!result.hasVerdict() || (has_passed(**known) && has_passed(result)))) {
    out->setVerdict((*known)->getVerdict());
  } else if (result.hasVerdict()) {
    out->setVerdict(result.getVerdict());
  }
  const unsigned before = measurement_count(known);
  const unsigned added = result.getMeasurements().size();
  auto measurements = out->initMeasurements(before + added);
  for (unsigned i = 0; i < before; ++i)
    measurements.setWithCaveats(i, (*known)->getMeasurements()[i]);
  for (unsigned i = 0; i < added; ++i)
    measurements.setWithCaveats(before + i, result.getMeasurements()[i]);
  const bool keeps_ok =
      known && (*known)->getOutcome() == Outcome::OK &&
      (result.getOutcome() == Outcome::UNSTABLE || result.getOutcome() == Outcome::INFRASTRUCTURE);
  out->setOutcome(keeps_ok ? Outcome::OK : result.getOutcome());
  out->setKind(keeps_ok ? (*known)->getKind() : result.getKind());
  out->setMessage(keeps_ok ? (*known)->getMessage() : result.getMessage());
  out->setScore(out->getOutcome() == Outcome::OK ? median_score(out->asReader().getMeasurements())
                                                 : 0);
  return out.finish();
}

}  // namespace

evaluation_ledger::evaluation_ledger(database& db, const options& o) : db_(&db), options_(o) {
  db.scan<schema::PendingWork>(
      family::pending, "", [&](std::string_view key, const record<schema::PendingWork>& stored) {
        const auto parsed = evaluation_from_key(key);
        if (!parsed) throw pool_error(db.folder().string() + ": a key of pending work is damaged");
        work w;
        w.task = task_id(stored->getTaskId());
        w.measurement = measurement_id(stored->getMeasurementId());
        w.attempt = stored->getAttempt();
        w.verified = stored->getVerified();
        w.wanted = stored->getWanted();
        w.population = stored->getPopulation();
        w.client = view(stored->getClient());
        w.priority = stored->getPriority();
        w.is_stored = true;
        for (const auto group : stored->getGroups()) w.groups.emplace_back(group);
        // Results of this judge cannot close the work of another judge version.
        if (parsed->judge != options_.judge_version) {
          w.attempt = max_attempts;
          w.how = work::state::obsolete;
        }
        pending_.emplace(*parsed, std::move(w));
        return true;
      });
}

void evaluation_ledger::store(const evaluation_key& key, work& w) {
  record_builder<schema::PendingWork> stored;
  w.task.store(stored->initTaskId());
  w.measurement.store(stored->initMeasurementId());
  stored->setAttempt(w.attempt);
  stored->setVerified(w.verified);
  stored->setWanted(w.wanted);
  stored->setPopulation(w.population);
  if (!w.client.empty()) stored->setClient(w.client);
  stored->setPriority(w.priority);
  auto groups = stored->initGroups(static_cast<unsigned>(w.groups.size()));
  for (unsigned i = 0; i < groups.size(); ++i) w.groups[i].store(groups[i]);
  if (w.is_stored) {
    db_->put(family::pending, key_of(key), stored.finish());
  } else {
    db_->put_first(family::pending, key_of(key), stored.finish());
  }
  w.is_stored = true;
}

void evaluation_ledger::send(const evaluation_key& key, work& w,
                             const schema::Variant::Reader& variant, double best_score,
                             double known_score, std::uint64_t now_ms,
                             std::vector<record<schema::CompileJob>>& jobs) {
  store(key, w);
  const auto type = device_types_.find(key.device_type);
  w.how = type != device_types_.end() ? work::state::sent : work::state::unsent;
  if (type == device_types_.end()) return;
  w.deadline_ms = now_ms + options_.deadline_ms;
  record_builder<schema::CompileJob> job;
  auto header = job->initHeader();
  w.measurement.store(header.initMeasurementId());
  key.variant.store(header.initVariantId());
  w.task.store(header.initTaskId());
  header.setDeviceType(key.device_type);
  header.setAttempt(w.attempt);
  header.setDeadlineMs(w.deadline_ms);
  header.setBestScore(best_score);
  header.setVerified(w.verified);
  header.setScope(key.scope);
  header.setScreened(is_screening(key.scope));
  header.setSubmittedMs(now_ms);
  header.setKnownScore(known_score);
  header.setTimed(w.wanted > 0);
  if (!w.client.empty()) header.setClient(w.client);
  header.setPriority(w.priority);
  if (const auto late = late_tasks_.find(w.task); late != late_tasks_.end())
    header.setTask(*late->second);
  job->setSettings(variant.getSettings());
  job->setCuda(variant.getCuda());
  job->setPython(variant.getPython());
  job->setDeviceType(*type->second);
  jobs.push_back(job.finish());
}

record<schema::Variant> evaluation_ledger::variant_of(const evaluation_key& key) const {
  auto variant = db_->get<schema::Variant>(family::variants, key_of(key.variant));
  if (!variant)
    throw pool_error(db_->folder().string() + ": the variant " + to_string(key.variant) +
                     " of pending work is missing");
  return std::move(*variant);
}

void evaluation_ledger::add_device_type(const record<schema::DeviceType>& type) {
  device_types_[std::string(view(type->getName()))] = type;
}

void evaluation_ledger::add_late_task(const record<schema::Task>& task) {
  late_tasks_[task_id(task->getId())] = task;
}

std::optional<record<schema::Evaluation>> evaluation_ledger::find(const evaluation_key& key) const {
  return db_->get<schema::Evaluation>(family::evaluations, key_of(key));
}

bool evaluation_ledger::request_evaluation(const schema::Variant::Reader& variant, bool is_new,
                                           const evaluation_key& key, const claim& by,
                                           double best_score, std::uint64_t now_ms,
                                           std::vector<record<schema::CompileJob>>& jobs) {
  if (const auto waiting = pending_.find(key); waiting != pending_.end()) {
    work& w = waiting->second;
    w.wanted = std::min(max_measurements, w.wanted + by.times);
    const bool waits = !w.groups.empty() || !find(key);
    if (waits) w.groups.push_back(by.group);
    store(key, w);
    return waits;
  }
  const auto known = is_new ? std::nullopt : find(key);
  if (known && is_refuted((*known)->getOutcome())) return false;
  const std::uint32_t have = measurement_count(known);
  const bool is_verified =
      known && (*known)->hasVerdict() && (*known)->getVerdict().getOutcome() == Outcome::OK;
  if (by.times == 0 && is_verified) return false;
  const bool is_known_ok = known && has_score(**known);
  const bool has_failed = known && (*known)->getOutcome() == Outcome::INFRASTRUCTURE;
  if (have >= max_measurements && !has_failed) return false;
  if (variant.getProblem().size() > 0) {
    record_builder<schema::Evaluation> closed;
    key.variant.store(closed->initVariantId());
    closed->setTaskId(variant.getTaskId());
    closed->setDeviceType(key.device_type);
    closed->setJudgeVersion(key.judge);
    closed->setScope(key.scope);
    random_id<measurement_id>().store(closed->initMeasurementId());
    closed->setOutcome(Outcome::UNPARSABLE);
    closed->setMessage(variant.getProblem());
    if (variant.getIsUnsupported()) closed->setKind(std::string(unsupported_kind));
    closed->setClosedMs(now_ms);
    db_->put(family::evaluations, key_of(key), closed.finish());
    return false;
  }
  work w;
  w.task = task_id(variant.getTaskId());
  w.measurement = random_id<measurement_id>();
  w.verified = is_verified;
  // A group does not wait for a variant that is already ok: further measurements only make its
  // score more precise.
  w.wanted =
      by.times == 0 ? 0 : std::min(max_measurements, is_known_ok ? have + by.times : have + 1);
  w.population = by.population;
  w.client = by.client;
  w.priority = by.priority;
  w.has_result = known.has_value();
  if (!is_known_ok) w.groups.push_back(by.group);
  send(key, pending_.emplace(key, w).first->second, variant, best_score,
       is_known_ok ? (*known)->getScore() : 0, now_ms, jobs);
  return !is_known_ok;
}

bool evaluation_ledger::measure_again(const task_id& task, const evaluation_key& key,
                                      std::uint32_t wanted, double best_score, std::uint64_t now_ms,
                                      std::vector<record<schema::CompileJob>>& jobs) {
  if (const auto waiting = pending_.find(key); waiting != pending_.end()) {
    if (waiting->second.wanted >= wanted) return false;
    waiting->second.wanted = wanted;
    store(key, waiting->second);
    return false;
  }
  const auto known = find(key);
  if (!known) {
    evaluate_once(task, key, 0, best_score, now_ms, jobs);
    return false;
  }
  if ((*known)->getOutcome() != Outcome::OK || measurement_count(known) >= wanted) return true;
  work w;
  w.task = task;
  w.measurement = random_id<measurement_id>();
  w.verified = true;
  w.wanted = wanted;
  send(key, pending_.emplace(key, w).first->second, *variant_of(key), best_score,
       (*known)->getScore(), now_ms, jobs);
  return false;
}

void evaluation_ledger::evaluate_once(const task_id& task, const evaluation_key& key,
                                      std::uint32_t population, double best_score,
                                      std::uint64_t now_ms,
                                      std::vector<record<schema::CompileJob>>& jobs) {
  const auto known = find(key);
  if (pending_.contains(key) || (known && !is_inconclusive((*known)->getOutcome()))) return;
  work w;
  w.task = task;
  w.measurement = random_id<measurement_id>();
  w.population = population;
  w.has_result = known.has_value();
  send(key, pending_.emplace(key, w).first->second, *variant_of(key), best_score, 0, now_ms, jobs);
}

std::vector<measurement_id> evaluation_ledger::withdraw(const std::set<group_id>& groups) {
  std::vector<measurement_id> given_up;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const evaluation_key& key = at->first;
    work& w = at->second;
    const auto left =
        std::erase_if(w.groups, [&](const group_id& one) { return groups.contains(one); });
    // A verified variant may be measured again.
    if (left > 0 && w.groups.empty() && !w.verified) {
      given_up.push_back(w.measurement);
      db_->remove(family::pending, key_of(key));
      at = pending_.erase(at);
      continue;
    }
    if (left > 0) store(key, w);
    ++at;
  }
  return given_up;
}

std::optional<evaluation_ledger::closing> evaluation_ledger::close(
    const record<schema::Evaluation>& result, double best_score, std::uint64_t now_ms,
    std::vector<record<schema::CompileJob>>& jobs) {
  closing closed;
  closed.key = {variant_id(result->getVariantId()), std::string(view(result->getDeviceType())),
                result->getJudgeVersion(), result->getScope()};
  const auto waiting = pending_.find(closed.key);
  if (waiting == pending_.end() ||
      waiting->second.measurement != measurement_id(result->getMeasurementId()))
    return std::nullopt;
  work& w = waiting->second;
  const auto before = w.has_result ? find(closed.key) : std::nullopt;
  closed.had_score = before && has_score(**before);
  if (result->getOutcome() == Outcome::INFRASTRUCTURE && w.attempt < max_attempts) {
    ++w.attempt;
    send(closed.key, w, *variant_of(closed.key), best_score,
         closed.had_score ? (*before)->getScore() : 0, now_ms, jobs);
    return std::nullopt;
  }
  closed.known = merge(before, *result, now_ms);
  closed.population = w.population;
  db_->put(family::evaluations, key_of(closed.key), closed.known);
  const bool goes_on = closed.known->getOutcome() == Outcome::OK &&
                       result->getOutcome() != Outcome::INFRASTRUCTURE &&
                       closed.known->getMeasurements().size() < w.wanted;
  // A group that joined a job without timing waits on for the score.
  if (!goes_on || has_score(*closed.known)) closed.released = std::exchange(w.groups, {});
  if (goes_on) {
    w.measurement = random_id<measurement_id>();
    w.attempt = 1;
    w.verified = true;
    w.has_result = true;
    send(closed.key, w, *variant_of(closed.key), best_score, closed.known->getScore(), now_ms,
         jobs);
  } else {
    db_->remove(family::pending, key_of(closed.key));
    pending_.erase(waiting);
  }
  return closed;
}

void evaluation_ledger::overdue(std::uint64_t now_ms, const best_score_of& best_score,
                                std::vector<record<schema::CompileJob>>& jobs,
                                std::vector<record<schema::Evaluation>>& lost) {
  for (auto& [key, w] : pending_) {
    const bool is_sent = w.how == work::state::sent;
    if (!device_types_.contains(key.device_type)) continue;
    if (is_sent && w.deadline_ms > now_ms) continue;
    const bool is_obsolete = w.how == work::state::obsolete;
    if (is_obsolete || (is_sent && w.attempt >= max_attempts)) {
      record_builder<schema::Evaluation> evaluation;
      key.variant.store(evaluation->initVariantId());
      w.task.store(evaluation->initTaskId());
      evaluation->setDeviceType(key.device_type);
      evaluation->setJudgeVersion(key.judge);
      evaluation->setScope(key.scope);
      w.measurement.store(evaluation->initMeasurementId());
      evaluation->setAttempt(w.attempt);
      evaluation->setOutcome(Outcome::INFRASTRUCTURE);
      evaluation->setMessage(is_obsolete
                                 ? "it waited for version " + std::to_string(key.judge) +
                                       " of the judge, and this is version " +
                                       std::to_string(options_.judge_version)
                                 : "no result after " + std::to_string(max_attempts) + " attempts");
      lost.push_back(evaluation.finish());
      continue;
    }
    if (is_sent) ++w.attempt;
    const auto known = find(key);
    send(key, w, *variant_of(key), best_score(w.task, key.device_type),
         known && has_score(**known) ? (*known)->getScore() : 0, now_ms, jobs);
  }
}

std::map<group_id, group_book::waiting_group> evaluation_ledger::waiting_groups() const {
  std::map<group_id, group_book::waiting_group> groups;
  for (const auto& [key, w] : pending_) {
    for (const group_id& id : w.groups) {
      group_book::waiting_group& group = groups[id];
      ++group.missing;
      group.device_type = key.device_type;
    }
  }
  return groups;
}

}  // namespace hone
