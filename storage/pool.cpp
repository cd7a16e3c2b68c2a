#include "storage/pool.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "storage/shown_index.hpp"

namespace hone {
namespace {

constexpr const char* format_key = "format";

// Variants of each task and device type that a new version of the judge judges again.
constexpr std::size_t judged_again = 16;

std::uint64_t stored_next_sequence(const database& db) {
  const auto format = db.get<schema::PoolFormat>(family::meta, format_key);
  return format ? (*format)->getNextReady() : 0;
}

// Returns a group as the pool stores it.
record<schema::RolloutGroup> stored_group(const schema::RolloutGroup::Reader& group,
                                          const pool_options& o) {
  using Origin = schema::RolloutGroup::Origin;
  record_builder<schema::RolloutGroup> stored(group);
  remove_parts(stored.root(), {.variants = true});
  const bool screens = stage_of(group) == Stage::VALIDATION      ? true
                       : group.getOrigin() == Origin::POLICY     ? o.screens
                       : group.getOrigin() == Origin::COMPARISON ? o.screens_comparisons
                                                                 : false;
  stored->setScreened(screens && group.getTimed());
  return copy_record<schema::RolloutGroup>(stored.root());
}

record<schema::PoolFormat> empty_format(std::uint32_t judge_version) {
  record_builder<schema::PoolFormat> format;
  format->setVersion(pool_format);
  format->setJudgeVersion(judge_version);
  format->setHasShown(true);
  return format.finish();
}

// Makes an empty pool in the folder if there is none, in one step: a process that is killed leaves
// a whole pool or none. Returns the folder.
const std::filesystem::path& with_pool(const pool_options& o) {
  namespace fs = std::filesystem;
  if (fs::exists(o.folder / "CURRENT")) return o.folder;
  const fs::path unfinished = o.folder.string() + ".unfinished";
  try {
    fs::remove_all(unfinished);
    {
      database made(unfinished, database::mode::create_or_open);
      made.put(family::meta, format_key, empty_format(o.judge_version));
      made.commit();
    }
    if (fs::is_directory(o.folder) && fs::is_empty(o.folder)) fs::remove(o.folder);
    fs::rename(unfinished, o.folder);
  } catch (const fs::filesystem_error& e) {
    throw pool_error(o.folder.string() + ": cannot be made: " + e.code().message());
  }
  return o.folder;
}

}  // namespace

void check_format(const database& db) {
  const auto format = db.get<schema::PoolFormat>(family::meta, format_key);
  if (!format)
    throw pool_error(db.folder().string() + ": there is no pool here (it has no format record)");
  if ((*format)->getVersion() != pool_format) {
    throw pool_error(db.folder().string() + ": a pool of format " +
                     std::to_string((*format)->getVersion()) + "; this program reads format " +
                     std::to_string(pool_format));
  }
}

pool::pool(const pool_options& options)
    : options_(options),
      db_(with_pool(options), database::mode::create_or_open),
      ledger_(db_, {options.judge_version, options.job_deadline_ms}),
      index_(db_),
      selector_(index_, options.exemplars),
      chain_(db_),
      book_(db_, ledger_.waiting_groups(), stored_next_sequence(db_)),
      attempts_(options.turns),
      samples_(db_),
      random_(random_bits()) {
  if (const auto format = db_.get<schema::PoolFormat>(family::meta, format_key)) {
    check_format(db_);
    next_version_ = (*format)->getNextVersion();
    unnamed_version_ = std::max(next_version_, (*format)->getUnnamedVersion());
    if (!(*format)->getHasShown()) {
      index_all_shown(db_);
      store_format();
      commit();
    }
    if ((*format)->getJudgeVersion() != options_.judge_version) judge_leaders_again();
  } else {
    store_format();
    commit();
  }
}

// No prompt shows a score of another judge, which may have been deceived. The variants that were
// the best for it are judged again, and are exemplars when they have a score of this judge.
void pool::judge_leaders_again() {
  std::vector<record<schema::CompileJob>> jobs;  // none: there is no device yet
  for (const auto& of : index_.reset(judged_again)) {
    for (const scored_variant& one : of.variants)
      ledger_.evaluate_once(
          of.task, {one.variant, of.device_type, options_.judge_version, run_scope}, 0, 0, 0, jobs);
  }
  store_format();
  commit();
}

void pool::store_format() {
  record_builder<schema::PoolFormat> format;
  format->setVersion(pool_format);
  format->setJudgeVersion(options_.judge_version);
  format->setHeadVersion(chain_.head().value_or(0));
  format->setHasHead(chain_.head().has_value());
  format->setNextVersion(next_version_);
  format->setUnnamedVersion(unnamed_version_);
  format->setNextReady(book_.next_sequence());
  format->setHasShown(true);
  db_.put(family::meta, format_key, format.finish());
}

void pool::commit() { db_.commit(); }

bool pool::write() { return db_.write(); }

void pool::sync() { db_.sync(); }

void pool::add_task(const record<schema::Task>& task) {
  const std::string key = key_of(task_id(task->getId()));
  if (task->getIsLate()) ledger_.add_late_task(task);
  if (!db_.has(family::tasks, key)) db_.put(family::tasks, key, task);
}

double pool::best_score(const task_id& task, const std::string& device_type) {
  const auto best = index_.best({task, device_type, 0});
  return best ? best->score : 0;
}

std::optional<scored_variant> pool::best(const task_id& task, const std::string& device_type) {
  return index_.best({task, device_type, 0});
}

std::uint64_t pool::accepted_variants(const task_id& task, const std::string& device_type) {
  std::uint64_t count = 0;
  for (const auto& [which, bucket] : index_.buckets({task, device_type, 0})) count += bucket.count;
  return count;
}

void pool::record_group(const record<schema::RolloutGroup>& group, std::uint64_t now_ms,
                        std::vector<record<schema::CompileJob>>& jobs) {
  const group_id id(group->getId());
  if (db_.has(family::groups, key_of(id))) return;
  const auto draw = group->getDraw();
  const std::string device_type = draw.getDeviceType();
  const task_id task(draw.getTaskId());
  note_versions(*group);
  const record<schema::RolloutGroup> stored = stored_group(*group, options_);
  db_.put(family::groups, key_of(id), stored);
  index_shown(db_, *stored);
  const std::uint32_t scope = scope_of(*stored);

  std::map<variant_id, std::uint32_t> times;
  std::uint32_t index = 0;
  for (const auto rollout : group->getRollouts()) {
    const variant_id variant(rollout.getVariantId());
    ++times[variant];
    record_builder<schema::RolloutPlace> place;
    id.store(place->initGroupId());
    place->setIndex(index++);
    db_.put(family::rollouts, rollout_key(variant, rollout_id(rollout.getId())), place.finish());
  }
  const double best = best_score(task, device_type);
  std::size_t waits_for = 0;
  for (const auto variant : group->getVariants()) {
    const variant_id variant_key(variant.getId());
    const std::string key = key_of(variant_key);
    const bool is_new = !db_.has(family::variants, key);
    if (is_new) db_.put(family::variants, key, copy_record<schema::Variant>(variant));
    const evaluation_key what{variant_key, device_type, options_.judge_version, scope};
    const evaluation_ledger::claim by{
        .group = id,
        .times = group->getTimed() ? std::max(1U, times[variant_key]) : 0,
        .population = draw.getPopulation(),
        .client = std::string(view(group->getRequest().getClient())),
        .priority = group->getRequest().getPriority()};
    if (ledger_.request_evaluation(variant, is_new, what, by, best, now_ms, jobs)) ++waits_for;
  }
  if (book_.begin(*stored, waits_for)) note_judged(*stored, now_ms, jobs);
}

bool pool::record_evaluation(const record<schema::Evaluation>& result, std::uint64_t now_ms,
                             std::vector<record<schema::CompileJob>>& jobs) {
  const task_id task(result->getTaskId());
  const std::string device_type = result->getDeviceType();
  const auto closed = ledger_.close(result, best_score(task, device_type), now_ms, jobs);
  if (!closed) return false;
  const bool is_of_corpus = book_.awaits_corpus(closed->released);
  for (const group_id& group : closed->released) {
    if (const auto complete = book_.release(group)) note_judged(**complete, now_ms, jobs);
  }
  if (closed->key.scope != run_scope) return true;
  if (has_score(*closed->known)) {
    selector_.accept(task, device_type, closed->population, closed->key.variant,
                     closed->known->getScore(), random_);
    // A run without earlier stages is contrastive while its corpus is judged.
    const auto* head = chain_.head_version();
    const bool has_begun =
        head != nullptr && (*head)->getStage() >= Stage::CONTRASTIVE && !is_of_corpus;
    selector_.accept_to_compare(task, device_type, closed->key.variant, closed->known->getScore(),
                                has_begun);
  } else {
    // An earlier judge may have given a score to what this one refutes.
    const bool loses_score = closed->had_score || is_refuted(closed->known->getOutcome());
    if (!loses_score || !selector_.withdraw(task, device_type, closed->key.variant)) return true;
  }
  measure_best_again(task, closed->key, now_ms, jobs);
  return true;
}

// A lucky measurement must not lead for long, so the best of several variants is measured until it
// has max_measurements measurements. A variant without rivals was not chosen for its score. A best
// variant that needs no further measurement is asked about again only when its own evaluation
// changes.
void pool::measure_best_again(const task_id& task, const evaluation_key& judged,
                              std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs) {
  const auto best = index_.best({task, judged.device_type, 0});
  if (!best || accepted_variants(task, judged.device_type) < 2) return;
  variant_id& measured = measured_best_[{task, judged.device_type}];
  if (measured == best->variant && judged.variant != best->variant) return;
  evaluation_key key = judged;
  key.variant = best->variant;
  key.judge = options_.judge_version;
  if (ledger_.measure_again(task, key, max_measurements, best->score, now_ms, jobs))
    measured = best->variant;
}

// Only a variant that is measured in full becomes an exemplar. That takes longer than the group's
// brief measurements, so a variant that is no faster than its population's best goes without.
void pool::measure_best_of(const schema::RolloutGroup::Reader& group,
                           const std::vector<record<schema::Evaluation>>& evaluated,
                           std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs) {
  const auto best =
      std::max_element(evaluated.begin(), evaluated.end(),
                       [](const auto& a, const auto& b) { return a->getScore() < b->getScore(); });
  if (best == evaluated.end() || !has_score(**best)) return;
  const auto draw = group.getDraw();
  const task_id task(draw.getTaskId());
  const std::string device_type = draw.getDeviceType();
  const auto leader = index_.best({task, device_type, draw.getPopulation()});
  if (leader && (*best)->getScore() <= leader->score) return;
  ledger_.evaluate_once(
      task, {variant_id((*best)->getVariantId()), device_type, options_.judge_version, run_scope},
      draw.getPopulation(), best_score(task, device_type), now_ms, jobs);
}

void pool::note_judged(const schema::RolloutGroup::Reader& group, std::uint64_t now_ms,
                       std::vector<record<schema::CompileJob>>& jobs) {
  std::vector<record<schema::Evaluation>> evaluated;
  std::vector<Outcome> outcomes;
  for (const auto rollout : group.getRollouts()) {
    const auto known = evaluation_of(group, rollout);
    if (!known) continue;
    evaluated.push_back(*known);
    outcomes.push_back(outcome_for(group, **known));
  }
  samples_.count(stage_of(group), outcomes);
  if (const auto copies = find_copies(group, evaluated); !copies.empty())
    book_.note_copies(group_id(group.getId()), copies);
  if (scope_of(group) == screening_scope) measure_best_of(group, evaluated, now_ms, jobs);
  if (options_.turns < 2) return;
  std::map<variant_id, attempt_book::judged_variant> judged;
  for (const auto& known : evaluated) {
    const variant_id id(known->getVariantId());
    const auto variant = db_.get<schema::Variant>(family::variants, key_of(id));
    // What could not be timed is no attempt to improve on.
    if (variant && outcome_for(group, *known) == known->getOutcome())
      judged[id] = {*variant, known};
  }
  std::vector<attempt_book::judged_variant> distinct;
  for (const auto& [id, one] : judged) distinct.push_back(one);
  const auto draw = group.getDraw();
  attempts_.consider(group, distinct, best_score(task_id(draw.getTaskId()), draw.getDeviceType()),
                     random_);
}

void pool::collect_overdue(std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs) {
  std::vector<record<schema::Evaluation>> lost;
  ledger_.overdue(
      now_ms,
      [this](const task_id& task, const std::string& device_type) {
        return best_score(task, device_type);
      },
      jobs, lost);
  for (const auto& evaluation : lost) record_evaluation(evaluation, now_ms, jobs);
}

record<schema::Draw> pool::draw(const draw_request& request) {
  record_builder<schema::Draw> draw;
  random_id<draw_id>().store(draw->initId());
  request.task.store(draw->initTaskId());
  draw->setDeviceType(request.device_type);
  draw->setStage(request.stage);
  draw->setPolicyVersion(request.policy_version);
  draw->setSamples(request.samples);
  draw->setSeed(random_());
  draw->setArm(request.arm);
  draw->setComparedAt(static_cast<std::uint32_t>(request.compared_at));
  draw->setComparison(static_cast<std::uint32_t>(request.comparison));
  const auto choice = request.arm == schema::Draw::Arm::BARE ? exemplar_selector::choice()
                      : is_compared(request.stage)
                          ? selector_.choose_to_compare(request.task, request.device_type, random_)
                          : selector_.choose(request.task, request.device_type, random_);
  draw->setPopulation(choice.population);
  auto exemplars = draw->initExemplars(static_cast<unsigned>(choice.exemplars.size()));
  for (unsigned i = 0; i < exemplars.size(); ++i) {
    const scored_variant& chosen = choice.exemplars[i];
    const auto variant = db_.get<schema::Variant>(family::variants, key_of(chosen.variant));
    if (!variant)
      throw pool_error(db_.folder().string() + ": the exemplar " + to_string(chosen.variant) +
                       " is missing");
    chosen.variant.store(exemplars[i].initVariantId());
    exemplars[i].setScore(chosen.score);
    exemplars[i].setSettings((*variant)->getSettings());
    exemplars[i].setCuda((*variant)->getCuda());
    exemplars[i].setPython((*variant)->getPython());
  }
  if (is_compared(request.stage)) return draw.finish();
  if (const auto attempt = attempts_.take(request.task, request.device_type)) {
    draw->setTurn(attempt->turn);
    draw->setAttempt(*attempt->attempt);
  }
  return draw.finish();
}

std::size_t pool::waiting_groups() const {
  std::size_t groups = 0;
  for (const auto& [device_type, waiting] : book_.waiting_by_type())
    groups += ledger_.has_device_type(device_type) ? waiting.all : 0;
  return groups;
}

std::size_t pool::waiting_drawn_groups() const {
  std::size_t groups = 0;
  for (const auto& [device_type, waiting] : book_.waiting_by_type())
    groups += ledger_.has_device_type(device_type) ? waiting.drawn : 0;
  return groups;
}

std::optional<record<schema::Evaluation>> pool::evaluation_of(
    const schema::RolloutGroup::Reader& group, const schema::Rollout::Reader& rollout) const {
  evaluation_key key{variant_id(rollout.getVariantId()), group.getDraw().getDeviceType(),
                     options_.judge_version, run_scope};
  const std::uint32_t scope = scope_of(group);
  // A result that a full evaluation has refuted stays refuted.
  if (scope == screening_scope) {
    if (auto full = ledger_.find(key); full && is_refuted((*full)->getOutcome())) return full;
  }
  key.scope = scope;
  return ledger_.find(key);
}

record<schema::ScoredGroup> pool::score_group(const group_id& group) const {
  const auto stored = db_.get<schema::RolloutGroup>(family::groups, key_of(group));
  if (!stored)
    throw pool_error(db_.folder().string() + ": the group " + to_string(group) + " is missing");
  record_builder<schema::ScoredGroup> scored;
  scored->setGroup(**stored);
  const auto rollouts = (*stored)->getRollouts();
  auto results = scored->initResults(rollouts.size());
  mark_copies(group, results);
  for (unsigned i = 0; i < rollouts.size(); ++i) {
    const auto known = evaluation_of(**stored, rollouts[i]);
    results[i].setOutcome(known ? outcome_for(**stored, **known) : Outcome::INFRASTRUCTURE);
    results[i].setScore(known ? (*known)->getScore() : 0);
    if (!known) continue;
    const auto over = speedups_over_baselines(**known);
    auto listed = results[i].initSpeedupsOver(static_cast<unsigned>(over.size()));
    unsigned b = 0;
    for (const auto& [name, speedup] : over) {
      listed[b].setName(name);
      listed[b++].setValue(speedup);
    }
  }
  return scored.finish();
}

}  // namespace hone
