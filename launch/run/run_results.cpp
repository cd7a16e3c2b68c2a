#include "launch/run/run_results.hpp"

#include <algorithm>
#include <optional>

#include "messages/names.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

class results_reader {
 public:
  explicit results_reader(const std::filesystem::path& folder) : pool_(folder) {
    for (const auto& t : pool_.tasks())
      found_.names[task_id(t->getId())] = std::string(view(t->getName()));
  }

  run_results read() {
    const auto groups = sorted_groups();
    count_variants();
    find_corpus_variants(groups);
    read_evaluations();
    read_groups(groups);
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

  // Returns true if a version has consumed the group.
  bool is_consumed(const group_id& group) const {
    const auto progress = pool_.progress(group);
    return progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED;
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
      if (is_comparison && !is_consumed(group_id(g->getId()))) {
        found_.left_out_samples += g->getRollouts().size();
        continue;
      }
      stage_row& row = found_.stages[stage];
      for (const auto rollout : g->getRollouts()) {
        const auto known =
            evaluation_of(*g, variant_id(rollout.getVariantId()), is_comparison ? 1 : 0);
        if (!known) {
          ++row.unknown;
          continue;
        }
        const Outcome outcome = (*known)->getOutcome();
        const double score = (*known)->getScore();
        ++row.outcomes[std::string(name_of(outcome))];
        if (g->getOrigin() == schema::RolloutGroup::Origin::CORPUS && outcome != Outcome::OK)
          found_.unlearned.emplace(rollout.getVariantId(), outcome);
        row.all.add(outcome, score);
        row.curve[before * curve_points / counts[stage]].add(outcome, score);
        if (is_last_quarter) row.last.add(outcome, score);
        if (!is_comparison) continue;
        const std::string place = found_.name_of(
            {task_id(g->getDraw().getTaskId()), std::string(view(g->getDraw().getDeviceType()))});
        found_.by_version[g->getDraw().getPolicyVersion()][place].push_back(
            {outcome == Outcome::OK, score});
      }
    }
  }

  static std::string stage_name(const schema::RolloutGroup::Reader& g) {
    return g.getOrigin() == schema::RolloutGroup::Origin::CORPUS
               ? "corpus"
               : std::string(name_of(g.getDraw().getStage()));
  }

  pool_inspector pool_;
  std::set<variant_id> corpus_variants_;
  run_results found_;
};

}  // namespace

std::string run_results::name_of(const place& where) const {
  const std::string& name = names.at(where.task);
  const auto bearers = std::count_if(names.begin(), names.end(),
                                     [&](const auto& one) { return one.second == name; });
  return name + (bearers > 1 ? " " + to_string(where.task).substr(0, 6) : "") +
         (device_types.size() > 1 ? " on " + where.device_type : "");
}

run_results read_results(const std::filesystem::path& pool) { return results_reader(pool).read(); }

}  // namespace hone
