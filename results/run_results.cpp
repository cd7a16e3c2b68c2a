#include "results/run_results.hpp"

#include <algorithm>
#include <cmath>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/compact_groups.hpp"
#include "results/known_outcomes.hpp"
#include "results/message_class.hpp"
#include "storage/inspection.hpp"
#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// A sample counts as faster than an exemplar from this ratio on.
constexpr double faster = 1.05;

// Reads a pool's families one after the other, each once, and keeps a few bytes of each record: the
// pool may be larger than memory.
class results_reader {
 public:
  results_reader(const pool_inspector& pool, const compact_groups& groups)
      : pool_(pool), groups_(groups), known_(groups.variants.size()) {
    for (auto* list : {&corpus_variants_, &references_, &written_})
      list->resize(groups.variants.size());
    for (const auto& t : pool_.tasks()) {
      found_.names[task_id(t->getId())] = std::string(view(t->getName()));
      ++found_.tasks_of_name[std::string(view(t->getName()))];
      const task parsed = from_record(*t);
      variant_document reference;
      reference.python = parsed.reference;
      mark(references_,
           variant_id(make_variant(parsed.id, print_variant_document(reference))->getId()));
      if (std::string fixed = fixed_tensors(parsed); !fixed.empty())
        found_.fixed[parsed.id] = std::move(fixed);
      if (t->getHeldOut()) held_out_.emplace(parsed.id, parsed.tier);
      if (t->getIsSample()) samples_.emplace(t->getId());
    }
  }

  run_results read() {
    find_corpus_variants();
    read_evaluations();
    count_variants();
    read_groups();
    read_steps();
    return std::move(found_);
  }

 private:
  using variant_set = std::vector<bool>;  // by index into groups_.variants

  static void mark(variant_set& set, std::uint32_t variant) {
    if (variant != compact_groups::no_variant) set[variant] = true;
  }
  void mark(variant_set& set, const variant_id& id) const {
    mark(set, index_of(groups_.variants, id));
  }
  static bool contains(const variant_set& set, std::uint32_t variant) {
    return variant != compact_groups::no_variant && set[variant];
  }

  void find_corpus_variants() {
    found_.samples = groups_.rollouts.size();
    for (const compact_group& g : groups_.groups) {
      if (g.origin != schema::RolloutGroup::Origin::CORPUS) continue;
      for (const auto& rollout : groups_.rollouts_of(g)) mark(corpus_variants_, rollout.variant);
    }
  }

  std::uint32_t index_of_type(const std::string& device_type) {
    return indices_.emplace(device_type, static_cast<std::uint32_t>(indices_.size())).first->second;
  }

  // Counts only evaluations of the newest judge version, because scores of different versions are
  // not comparable.
  void read_evaluations() {
    std::map<std::uint32_t, judged_by> versions;
    counting_evaluations counting;
    pool_.each_evaluation_of_any_scope(
        [&](const evaluation_key& key, const record<schema::Evaluation>& e) {
          found_.measurements += e->getMeasurements().size();
          const std::uint32_t variant = index_of(groups_.variants, key.variant);
          if (variant != compact_groups::no_variant)
            known_.add({.variant = variant,
                        .device_type = index_of_type(key.device_type),
                        .scope = key.scope,
                        .judge = key.judge,
                        .score = e->getScore(),
                        .outcome = e->getOutcome()});
          if (counting.counts(key)) count_evaluation(key, variant, *e, versions[key.judge]);
        });
    known_.finish();
    if (versions.empty()) return;
    judged_by& newest = versions.rbegin()->second;
    found_.tasks = std::move(newest.tasks);
    for (const auto& [where, row] : found_.tasks) found_.device_types.insert(where.device_type);
    found_.unparsable = newest.unparsable;
    found_.infrastructure = newest.infrastructure;
    found_.judged = newest.judged;
    found_.timed = newest.timed;
    found_.new_programs = newest.new_programs;
    found_.failures = std::move(newest.failures);
    for (auto& [where, row] : found_.tasks) {
      if (!row.best) continue;
      const std::uint32_t best = index_of(groups_.variants, variant_id(row.best->getVariantId()));
      row.in_corpus = contains(corpus_variants_, best);
      row.is_reference = contains(references_, best);
    }
  }

  // What evaluations of one judge version add up to.
  struct judged_by {
    std::map<place, task_row> tasks;
    std::uint64_t unparsable = 0;
    std::uint64_t infrastructure = 0;
    std::uint64_t judged = 0;
    std::uint64_t timed = 0;
    std::uint64_t new_programs = 0;
    std::map<std::pair<Outcome, std::string>, failure_row> failures;
  };

  static void count_failure(const evaluation_key& key, const schema::Evaluation::Reader& e,
                            judged_by& counts) {
    if (e.getOutcome() == Outcome::OK) return;
    failure_row& row = counts.failures[{e.getOutcome(), message_class(view(e.getMessage()))}];
    if (row.evaluations++ == 0) row.example = key.variant;
  }

  void count_evaluation(const evaluation_key& key, std::uint32_t variant,
                        const schema::Evaluation::Reader& e, judged_by& counts) const {
    // A stream's tasks are many, and each has one document: they are counted, and not listed.
    const task_id task(e.getTaskId());
    task_row unlisted;
    task_row& row = samples_.contains(task) ? unlisted : counts.tasks[{task, key.device_type}];
    count_failure(key, e, counts);
    if (e.getOutcome() == Outcome::UNPARSABLE) {
      ++counts.unparsable;
      return;
    }
    if (e.getOutcome() == Outcome::INFRASTRUCTURE) {
      ++counts.infrastructure;
      return;
    }
    ++counts.judged;
    const bool is_old = contains(corpus_variants_, variant) || contains(references_, variant);
    counts.new_programs += is_old ? 0 : 1;
    counts.timed += e.getMeasurements().size() > 0 ? 1 : 0;
    ++row.tried;
    if (e.getOutcome() != Outcome::OK) return;
    ++row.ok;
    if (key.scope == run_scope && has_score(e) &&
        (!row.best || headline_of(e).deciding() > headline_of(*row.best).deciding()))
      row.best = copy_record<schema::Evaluation>(e);
  }

  void count_variants() {
    for (std::uint32_t variant = 0; variant < groups_.variants.size(); ++variant) {
      const auto outcomes = known_.of(variant);
      const bool is_evaluated = std::any_of(outcomes.begin(), outcomes.end(), [](const auto& one) {
        return !is_comparison(one.scope);
      });
      ++(is_evaluated        ? found_.evaluated_variants
         : !outcomes.empty() ? found_.compared_variants
                             : found_.waiting_variants);
    }
  }

  sample_source source_of(const compact_groups::rollout& rollout, Outcome outcome) const {
    return outcome == Outcome::UNPARSABLE                ? sample_source::none
           : rollout.is_copy != 0                        ? sample_source::shown
           : contains(corpus_variants_, rollout.variant) ? sample_source::corpus
           : contains(references_, rollout.variant)      ? sample_source::reference
           : contains(written_, rollout.variant)         ? sample_source::known
                                                         : sample_source::fresh;
  }

  // A comparison's groups count only after a version has consumed them.
  void read_groups() {
    std::map<std::string, std::uint64_t> counts;
    std::vector<const compact_group*> groups;
    for (const compact_group& g : groups_.groups) {
      const std::uint64_t given_up = count_given_up(g);
      found_.given_up_samples += given_up;
      if (given_up > 0 && given_up == g.rollouts) continue;
      groups.push_back(&g);
      ++counts[stage_name(g)];
    }
    std::map<std::string, std::uint64_t> seen;
    for (const compact_group* one : groups) {
      const compact_group& g = *one;
      const std::string stage = stage_name(g);
      const compact_groups::where& at = groups_.places[g.place];
      const place where{at.task, at.device_type};
      const std::uint64_t before = seen[stage]++;
      const bool is_last_quarter = seen[stage] * 4 > counts[stage] * 3;
      if (g.stage == Stage::VALIDATION) {
        found_.validation_samples += g.rollouts;
        continue;
      }
      if (g.origin == schema::RolloutGroup::Origin::COMPARISON &&
          g.state != schema::GroupProgress::State::TRAINED) {
        found_.left_out_samples += g.rollouts;
        continue;
      }
      if (g.state == schema::GroupProgress::State::DROPPED)
        ++found_.dropped_groups[where.device_type];
      stage_row& row = found_.stages[stage];
      std::vector<scored_sums*> parts = {&row.all,
                                         &row.curve[before * curve_points / counts[stage]]};
      if (is_last_quarter) parts.push_back(&row.last);
      group_sums sums;
      for (const auto& rollout : groups_.rollouts_of(g)) read_sample(g, where, rollout, row, sums);
      if (!sums.outcomes.empty())
        add_sums(sums, where, parts, row, row.by_version[g.policy_version]);
      for (const auto& rollout : groups_.rollouts_of(g)) mark(written_, rollout.variant);
    }
  }

  static void add_sums(const group_sums& sums, const place& where,
                       const std::vector<scored_sums*>& parts, stage_row& row,
                       version_row& of_version) {
    for (scored_sums* part : parts) part->add(where, sums);
    of_version.all.add(where, sums);
    for (const auto& [outcome, count] : sums.outcomes) {
      row.outcomes[std::string(name_of(outcome))] += count;
      of_version.outcomes[std::string(name_of(outcome))] += count;
    }
  }

  // Returns the outcome that counts for a rollout of a group; null if there is none. A result that
  // a full evaluation has refuted stays refuted, whatever its screening says.
  const known_outcome* outcome_for(const compact_group& g, std::uint32_t variant) {
    const std::uint32_t type = index_of_type(groups_.places[g.place].device_type);
    const known_outcome* full = known_.find(variant, type, run_scope);
    const bool counts = g.scope == screening_scope && full != nullptr && is_refuted(full->outcome);
    return counts ? full : known_.find(variant, type, g.scope);
  }

  // Returns the number of samples that were not judged because nobody needs them any more.
  std::uint64_t count_given_up(const compact_group& g) {
    const bool is_compared = g.origin == schema::RolloutGroup::Origin::COMPARISON;
    if (g.state != schema::GroupProgress::State::DROPPED || is_compared) return 0;
    const auto rollouts = groups_.rollouts_of(g);
    return static_cast<std::uint64_t>(std::count_if(
        rollouts.begin(), rollouts.end(),
        [&](const auto& rollout) { return outcome_for(g, rollout.variant) == nullptr; }));
  }

  void read_sample(const compact_group& g, const place& where,
                   const compact_groups::rollout& rollout, stage_row& row, group_sums& sums) {
    const known_outcome* known = outcome_for(g, rollout.variant);
    if (known == nullptr) {
      row.unknown += g.state == schema::GroupProgress::State::DROPPED ? 0 : 1;
      return;
    }
    const Outcome outcome = known->outcome;
    const double score = known->score;
    const bool is_of_corpus = g.origin == schema::RolloutGroup::Origin::CORPUS;
    if (outcome == Outcome::OK && score == 0 && !is_of_corpus) {  // verified, and not timed yet
      ++row.unknown;
      return;
    }
    sums.add(outcome, score);
    if (is_of_corpus) {
      if (outcome != Outcome::OK)
        found_.unlearned.emplace(groups_.variants[rollout.variant], outcome);
      return;
    }
    const sample_source source = source_of(rollout, outcome);
    row.by_source.at(static_cast<std::size_t>(source)).add(outcome);
    if (outcome == Outcome::OK && g.best_shown > 0) {
      ++row.gain.samples;
      row.gain.faster += score >= faster * g.best_shown ? 1 : 0;
      row.gain.log_gain += std::log(std::max(score, min_speedup) / g.best_shown);
    }
    if (g.turn > 0) {
      revision_sums& revisions = row.revisions[g.turn];
      ++revisions.samples;
      revisions.ok += outcome == Outcome::OK ? 1 : 0;
      revisions.better += outcome == Outcome::OK && score >= faster * g.attempt_score ? 1 : 0;
    }
    if (!is_comparison(g.scope)) return;
    if (is_inconclusive(outcome)) {
      ++found_.inconclusive_compared;
      return;
    }
    const auto held_out = held_out_.find(where.task);
    auto& compared = held_out != held_out_.end() ? found_.held_out : found_.compared;
    const std::string name = found_.name_of(where);
    if (held_out != held_out_.end() && held_out->second > 0) found_.tiers[name] = held_out->second;
    compared[g.arm][g.policy_version][name].push_back({outcome == Outcome::OK, score,
                                                       source == sample_source::shown,
                                                       source == sample_source::fresh});
  }

  // Names the versions by their stages, and counts the tokens that were trained on and the updates
  // that were skipped on the way to the head.
  void read_steps() {
    const version_chain versions = pool_.versions();
    if (!versions.head()) return;
    double tokens = 0;
    for (const std::uint64_t version : versions.path_to(*versions.head())) {
      const auto* known = versions.find(version);
      const std::string stage(name_of((*known)->getStage()));
      const std::uint32_t steps = (*known)->getStep();
      found_.is_contrastive_over = (*known)->getStage() > Stage::CONTRASTIVE;
      if ((*known)->getStage() != Stage::COMPARISON)
        found_.version_names[version] =
            steps == 0 ? "before " + stage : "in " + stage + ", step " + std::to_string(steps);
      if ((*known)->getStage() == Stage::CONTRASTIVE && steps == 0)
        found_.before_contrastive = version;
      if (const auto step = pool_.step(version)) {
        for (const auto metric : (*step)->getMetrics()) {
          if (view(metric.getName()) == "skipped_updates")
            found_.skipped_updates += metric.getValue();
          if (view(metric.getName()) == "tokens") tokens += metric.getValue();
          if ((*known)->getStage() == Stage::CONTRASTIVE &&
              view(metric.getName()) == "planned_steps")
            found_.planned_contrastive_steps = static_cast<std::uint64_t>(metric.getValue());
          if (view(metric.getName()) == "groups_with_signal") {
            ++found_.contrastive_steps;
            found_.steps_without_signal += metric.getValue() == 0 ? 1 : 0;
          }
          if (view(metric.getName()).starts_with("validation_"))
            found_.validations[version][std::string(view(metric.getName()))] = metric.getValue();
        }
      }
      found_.trained_tokens[version] = tokens;
    }
  }

  static std::string stage_name(const compact_group& g) {
    return g.origin == schema::RolloutGroup::Origin::CORPUS ? "corpus"
                                                            : std::string(name_of(g.stage));
  }

  const pool_inspector& pool_;
  const compact_groups& groups_;
  std::map<task_id, std::uint32_t> held_out_;     // with their tiers
  std::set<task_id> samples_;                     // of the stream
  std::map<std::string, std::uint32_t> indices_;  // of device types
  known_outcomes known_;
  variant_set corpus_variants_;
  variant_set references_;
  variant_set written_;  // variants of the groups that were read so far
  run_results found_;
};

}  // namespace

std::string_view name_of(sample_source source) {
  constexpr std::array<std::string_view, sample_sources> names = {"no_program", "shown", "corpus",
                                                                  "reference",  "known", "new"};
  return names.at(static_cast<std::size_t>(source));
}

std::string run_results::name_of(const place& where) const {
  const std::string& name = names.at(where.task);
  return name + (tasks_of_name.at(name) > 1 ? " " + to_string(where.task).substr(0, 6) : "") +
         (device_types.size() > 1 ? " on " + where.device_type : "");
}

bool is_complete(const pool_inspector& pool) {
  const version_chain versions = pool.versions();
  const auto* head = versions.head_version();
  return head != nullptr && (*head)->getComplete();
}

run_results read_results(const pool_inspector& pool, const compact_groups& groups) {
  return results_reader(pool, groups).read();
}

run_results read_results(const pool_inspector& pool) {
  return read_results(pool, read_compact_groups(pool));
}

run_results read_results(const std::filesystem::path& pool) {
  return read_results(pool_inspector(pool));
}

}  // namespace hone
