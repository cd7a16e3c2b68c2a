#include "launch/run/run_results.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "messages/names.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

constexpr double least_score = 1e-6;
// A sample counts as faster than an exemplar from this ratio on.
constexpr double faster = 1.05;

class results_reader {
 public:
  explicit results_reader(const std::filesystem::path& folder) : pool_(folder) {
    for (const auto& t : pool_.tasks()) {
      found_.names[task_id(t->getId())] = std::string(view(t->getName()));
      if (t->getHeldOut()) held_out_.emplace(t->getId());
    }
  }

  run_results read() {
    const auto groups = sorted_groups();
    count_variants();
    find_corpus_variants(groups);
    read_evaluations();
    read_groups(groups);
    read_steps();
    return std::move(found_);
  }

 private:
  // Returns the groups in the order in which they were finished.
  std::vector<record<schema::RolloutGroup>> sorted_groups() const {
    std::vector<record<schema::RolloutGroup>> groups;
    pool_.db().scan<schema::RolloutGroup>(
        family::groups, "", [&](std::string_view, const record<schema::RolloutGroup>& g) {
          groups.push_back(g);
          return true;
        });
    // Groups of one millisecond stay in the order of their ids.
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return a->getFinishedMs() < b->getFinishedMs();
    });
    return groups;
  }

  void count_variants() {
    const auto counted = pool_.count();
    found_.samples = counted.rollouts;
    found_.evaluated_variants = counted.evaluated_variants;
    found_.compared_variants = counted.compared_variants;
    found_.waiting_variants = counted.waiting_variants;
  }

  void find_corpus_variants(const std::vector<record<schema::RolloutGroup>>& groups) {
    for (const auto& g : groups) {
      if (g->getOrigin() != schema::RolloutGroup::Origin::CORPUS) continue;
      for (const auto rollout : g->getRollouts()) corpus_variants_.emplace(rollout.getVariantId());
    }
  }

  // Counts only evaluations of the newest judge version, because scores of different versions are
  // not comparable.
  void read_evaluations() {
    std::uint32_t judge = 0;
    pool_.each_evaluation_of_any_scope(
        [&](const evaluation_key& key, const record<schema::Evaluation>& e) {
          found_.measurements += e->getMeasurements().size();
          if (key.scope == 0) judge = std::max(judge, key.judge);
        });
    pool_.each_evaluation([&](const evaluation_key& key, const record<schema::Evaluation>& e) {
      if (key.judge != judge) return;
      task_row& row = found_.tasks[{task_id(e->getTaskId()), key.device_type}];
      found_.device_types.insert(key.device_type);
      if (e->getOutcome() == Outcome::UNPARSABLE) {
        ++found_.unparsable;
        return;
      }
      if (e->getOutcome() == Outcome::INFRASTRUCTURE) {
        ++found_.infrastructure;
        return;
      }
      ++found_.judged;
      if (!corpus_variants_.contains(variant_id(e->getVariantId()))) ++found_.new_programs;
      found_.timed += e->getMeasurements().size() > 0 ? 1 : 0;
      ++row.tried;
      if (e->getOutcome() != Outcome::OK) return;
      ++row.ok;
      if (!row.best || e->getScore() > row.best->getScore()) row.best = e;
    });
    for (auto& [where, row] : found_.tasks) {
      if (row.best) row.in_corpus = corpus_variants_.contains(variant_id(row.best->getVariantId()));
    }
  }

  // Returns the variant's evaluation by the newest judge version, or nullopt if there is none yet.
  std::optional<record<schema::Evaluation>> evaluation_of(const schema::RolloutGroup::Reader& group,
                                                          const variant_id& variant,
                                                          std::uint32_t scope) const {
    std::optional<record<schema::Evaluation>> newest;
    for (const auto& e : pool_.evaluations_of(variant)) {
      if (e->getScope() != scope ||
          view(e->getDeviceType()) != view(group.getDraw().getDeviceType()))
        continue;
      if (!newest || e->getJudgeVersion() > (*newest)->getJudgeVersion()) newest = e;
    }
    return newest;
  }

  schema::GroupProgress::State state_of(const group_id& group) const {
    const auto progress = pool_.progress(group);
    return progress ? (*progress)->getState() : schema::GroupProgress::State::PENDING;
  }

  // Where a sample's program comes from, and the score of the fastest exemplar that its prompt
  // showed (0 without exemplars).
  struct origin {
    sample_source source = sample_source::fresh;
    double best_shown = 0;
  };
  origin origin_of(const schema::RolloutGroup::Reader& group, const variant_id& variant) const {
    origin from;
    bool is_shown = false;
    for (const auto exemplar : group.getDraw().getExemplars()) {
      from.best_shown = std::max(from.best_shown, exemplar.getScore());
      is_shown = is_shown || variant_id(exemplar.getVariantId()) == variant;
    }
    from.source = is_shown                             ? sample_source::shown
                  : corpus_variants_.contains(variant) ? sample_source::corpus
                  : written_.contains(variant)         ? sample_source::known
                                                       : sample_source::fresh;
    return from;
  }

  // A comparison's groups count only after a version has consumed them.
  void read_groups(const std::vector<record<schema::RolloutGroup>>& groups) {
    std::map<std::string, std::uint64_t> counts;
    for (const auto& g : groups) ++counts[stage_name(*g)];
    std::map<std::string, std::uint64_t> seen;
    for (const auto& g : groups) {
      const std::string stage = stage_name(*g);
      const std::uint64_t before = seen[stage]++;
      const bool is_last_quarter = seen[stage] * 4 > counts[stage] * 3;
      const bool is_comparison = g->getOrigin() == schema::RolloutGroup::Origin::COMPARISON;
      const auto state = state_of(group_id(g->getId()));
      if (is_comparison && state != schema::GroupProgress::State::TRAINED) {
        found_.left_out_samples += g->getRollouts().size();
        continue;
      }
      if (state == schema::GroupProgress::State::DROPPED)
        ++found_.dropped_groups[g->getDraw().getDeviceType()];
      stage_row& row = found_.stages[stage];
      std::vector<scored_sums*> parts = {&row.all,
                                         &row.curve[before * curve_points / counts[stage]]};
      if (is_last_quarter) parts.push_back(&row.last);
      for (const auto rollout : g->getRollouts()) read_sample(*g, rollout, row, parts);
      for (const auto rollout : g->getRollouts()) written_.emplace(rollout.getVariantId());
    }
  }

  void read_sample(const schema::RolloutGroup::Reader& g, const schema::Rollout::Reader& rollout,
                   stage_row& row, const std::vector<scored_sums*>& parts) {
    const bool is_comparison = g.getOrigin() == schema::RolloutGroup::Origin::COMPARISON;
    const variant_id variant(rollout.getVariantId());
    const auto known = evaluation_of(g, variant, is_comparison ? 1 : 0);
    if (!known) {
      ++row.unknown;
      return;
    }
    const Outcome outcome = (*known)->getOutcome();
    const double score = (*known)->getScore();
    const place where{task_id(g.getDraw().getTaskId()), g.getDraw().getDeviceType()};
    ++row.outcomes[std::string(name_of(outcome))];
    for (scored_sums* part : parts) part->add(where, outcome, score);
    if (g.getOrigin() == schema::RolloutGroup::Origin::CORPUS) {
      if (outcome != Outcome::OK) found_.unlearned.emplace(variant, outcome);
      return;
    }
    const origin from = origin_of(g, variant);
    row.by_source.at(static_cast<std::size_t>(from.source)).add(outcome);
    if (outcome == Outcome::OK && from.best_shown > 0) {
      ++row.gain.samples;
      row.gain.faster += score >= faster * from.best_shown ? 1 : 0;
      row.gain.log_gain += std::log(std::max(score, least_score) / from.best_shown);
    }
    if (!is_comparison) return;
    if (is_inconclusive(outcome)) {
      ++found_.inconclusive_compared;
      return;
    }
    auto& compared = held_out_.contains(where.task) ? found_.held_out : found_.compared;
    compared[g.getDraw().getArm()][g.getDraw().getPolicyVersion()][found_.name_of(where)].push_back(
        {outcome == Outcome::OK, score, from.source == sample_source::shown,
         from.source == sample_source::fresh});
  }

  // Names the compared versions by the stage that begins or ends with them, and counts the updates
  // that were skipped on the way to the head.
  void read_steps() {
    const version_chain versions = pool_.versions();
    if (!versions.head()) return;
    for (const std::uint64_t version : versions.path_to(*versions.head())) {
      const auto* known = versions.find(version);
      if ((*known)->getStep() == 0 && (*known)->getStage() != Stage::COMPARISON)
        found_.version_names[version] = "before " + std::string(name_of((*known)->getStage()));
      const auto step = pool_.step(version);
      if (!step) continue;
      for (const auto metric : (*step)->getMetrics()) {
        if (view(metric.getName()) == "skipped_updates")
          found_.skipped_updates += metric.getValue();
      }
    }
  }

  static std::string stage_name(const schema::RolloutGroup::Reader& g) {
    return g.getOrigin() == schema::RolloutGroup::Origin::CORPUS
               ? "corpus"
               : std::string(name_of(g.getDraw().getStage()));
  }

  pool_inspector pool_;
  std::set<task_id> held_out_;
  std::set<variant_id> corpus_variants_;
  std::set<variant_id> written_;  // variants of the groups that were read so far
  run_results found_;
};

}  // namespace

std::string_view name_of(sample_source source) {
  constexpr std::array<std::string_view, sample_sources> names = {"shown", "corpus", "known",
                                                                  "new"};
  return names.at(static_cast<std::size_t>(source));
}

void scored_sums::add(const place& where, Outcome outcome, double score) {
  all.add(outcome);
  if (is_inconclusive(outcome)) return;
  auto& [samples, log] = logs[where];
  ++samples;
  log += std::log(outcome == Outcome::OK ? std::max(score, least_score) : failed_speedup);
}

double scored_sums::mean_log() const {
  double sum = 0;
  for (const auto& [where, its] : logs) sum += its.second / its.first;
  return logs.empty() ? 0 : sum / static_cast<double>(logs.size());
}

std::string run_results::name_of(const place& where) const {
  const std::string& name = names.at(where.task);
  const auto bearers = std::count_if(names.begin(), names.end(),
                                     [&](const auto& one) { return one.second == name; });
  return name + (bearers > 1 ? " " + to_string(where.task).substr(0, 6) : "") +
         (device_types.size() > 1 ? " on " + where.device_type : "");
}

run_results read_results(const std::filesystem::path& pool) { return results_reader(pool).read(); }

}  // namespace hone
