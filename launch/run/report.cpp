#include "launch/run/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <optional>
#include <set>

#include "launch/printing.hpp"
#include "launch/run/comparison.hpp"
#include "messages/names.hpp"
#include "storage/inspection.hpp"
#include "tasks/task_file.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t bootstrap_resamples = 10000;
constexpr std::size_t curve_points = 10;

struct place {
  task_id task;
  std::string device_type;
  auto operator<=>(const place&) const = default;
};

struct task_row {
  std::uint64_t tried = 0;
  std::uint64_t ok = 0;
  record<schema::Evaluation> best;
  bool in_corpus = false;
};

// Sums over samples.
struct sample_sums {
  double samples = 0;
  double reward = 0;
  double ok = 0;

  void add(Outcome outcome, double score) {
    ++samples;
    reward += outcome == Outcome::OK ? score : 0;
    ok += outcome == Outcome::OK ? 1 : 0;
  }
  double mean_reward() const { return samples > 0 ? reward / samples : 0; }
  double share_ok() const { return samples > 0 ? ok / samples : 0; }
};

struct stage_row {
  sample_sums all;
  sample_sums last;                             // over the last quarter of the groups
  std::array<sample_sums, curve_points> curve;  // over equal parts of the groups, in order of time
  std::map<std::string, std::uint64_t> outcomes;
  std::uint64_t unknown = 0;  // samples without an evaluation
};

class reporter {
 public:
  explicit reporter(const std::filesystem::path& folder) : pool_(folder) {
    for (const auto& t : pool_.tasks())
      names_[task_id(t->getId())] = std::string(view(t->getName()));
  }

  run_report make(const std::map<std::string, double>& busy, double seconds, bool is_resumed) {
    read_evaluations();
    read_groups();
    print_tasks();
    print_stages();
    print_comparison();
    print_busy(busy, seconds, is_resumed);
    print_counts(is_resumed ? 0 : seconds / 3600);
    return {text_, json_};
  }

 private:
  void line(const std::string& s = "") { text_ += s + "\n"; }

  // Counts only evaluations of the newest judge version, because scores of different versions are
  // not comparable.
  void read_evaluations() {
    std::uint32_t judge = 0;
    pool_.each_evaluation_of_any_scope(
        [&](const evaluation_key& key, const record<schema::Evaluation>& e) {
          measurements_ += e->getMeasurements().size();
          if (key.scope == 0) judge = std::max(judge, key.judge);
        });
    pool_.each_evaluation([&](const evaluation_key& key, const record<schema::Evaluation>& e) {
      if (key.judge != judge) return;
      task_row& row = tasks_[{task_id(e->getTaskId()), key.device_type}];
      device_types_.insert(key.device_type);
      if (!was_judged(e->getOutcome())) return;
      ++evaluated_;
      timed_ += e->getMeasurements().size() > 0 ? 1 : 0;
      ++row.tried;
      if (e->getOutcome() != Outcome::OK) return;
      ++row.ok;
      if (!row.best || e->getScore() > row.best->getScore()) row.best = e;
    });
    for (auto& [where, row] : tasks_) {
      if (!row.best) continue;
      for (const auto& written : pool_.rollouts_of(variant_id(row.best->getVariantId()))) {
        const auto group = pool_.group(written.group);
        row.in_corpus = row.in_corpus ||
                        (group && (*group)->getOrigin() == schema::RolloutGroup::Origin::CORPUS);
      }
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

  // Reads the groups in the order in which they were finished. A comparison's groups count only
  // after a version has consumed them.
  void read_groups() {
    std::vector<record<schema::RolloutGroup>> groups;
    pool_.db().scan<schema::RolloutGroup>(
        family::groups, "", [&](std::string_view, const record<schema::RolloutGroup>& g) {
          groups.push_back(g);
          return true;
        });
    std::sort(groups.begin(), groups.end(),
              [](const auto& a, const auto& b) { return a->getFinishedMs() < b->getFinishedMs(); });
    std::map<std::string, std::uint64_t> counts;
    for (const auto& g : groups) ++counts[stage_name(*g)];
    std::map<std::string, std::uint64_t> seen;
    for (const auto& g : groups) {
      const std::string stage = stage_name(*g);
      const std::uint64_t before = seen[stage]++;
      const bool is_last_quarter = seen[stage] * 4 > counts[stage] * 3;
      const bool is_comparison = g->getOrigin() == schema::RolloutGroup::Origin::COMPARISON;
      if (is_comparison) {
        const auto progress = pool_.progress(group_id(g->getId()));
        if (!progress || (*progress)->getState() != schema::GroupProgress::State::TRAINED) continue;
      }
      stage_row& row = stages_[stage];
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
        row.all.add(outcome, score);
        row.curve[before * curve_points / counts[stage]].add(outcome, score);
        if (is_last_quarter) row.last.add(outcome, score);
        if (!is_comparison) continue;
        const std::string place = name_of_place(
            {task_id(g->getDraw().getTaskId()), std::string(view(g->getDraw().getDeviceType()))});
        by_version_[g->getDraw().getPolicyVersion()][place].push_back(
            {outcome == Outcome::OK, score});
      }
    }
  }

  static std::string stage_name(const schema::RolloutGroup::Reader& g) {
    return g.getOrigin() == schema::RolloutGroup::Origin::CORPUS
               ? "corpus"
               : std::string(name_of(g.getDraw().getStage()));
  }

  static bool was_judged(Outcome outcome) {
    return outcome != Outcome::UNPARSABLE && outcome != Outcome::INFRASTRUCTURE;
  }

  // Returns the task's name, with digits of its id if the pool has several tasks of this name (a
  // task that was edited before a resumption), and with the device type if there are several types.
  std::string name_of_place(const place& where) {
    const std::string& name = names_[where.task];
    const auto bearers = std::count_if(names_.begin(), names_.end(),
                                       [&](const auto& one) { return one.second == name; });
    return name + (bearers > 1 ? " " + to_string(where.task).substr(0, 6) : "") +
           (device_types_.size() > 1 ? " on " + where.device_type : "");
  }

  void print_tasks() {
    line("Tasks");
    line(pad("  task", 26) + pad("reference", 12, true) + pad("best", 12, true) +
         pad("speed-up", 11, true) + pad("tried", 8, true) + pad("ok", 7, true) +
         "   best variant");
    json_["tasks"] = ordered_json::array();
    std::size_t not_in_corpus = 0;
    std::size_t solved = 0;
    std::map<std::string, place> in_order;
    for (const auto& [where, row] : tasks_) in_order[name_of_place(where)] = where;
    for (const auto& [name, where] : in_order) {
      const task_row& row = tasks_[where];
      ordered_json entry = {{"task", names_[where.task]},
                            {"device_type", where.device_type},
                            {"tried", row.tried},
                            {"ok", row.ok}};
      std::string text = pad("  " + name + " ", 26);
      if (row.best) {
        const auto shown = measurement_of_score(*row.best);
        const std::string id = to_string(variant_id(row.best->getVariantId()));
        ++solved;
        not_in_corpus += row.in_corpus ? 0 : 1;
        text += pad(fixed(reference_us(shown), 1) + " us", 12, true) +
                pad(fixed(candidate_us(shown), 1) + " us", 12, true) +
                pad(fixed(row.best->getScore(), 2) + "x", 11, true) +
                pad(std::to_string(row.tried), 8, true) + pad(std::to_string(row.ok), 7, true) +
                "   " + id.substr(0, 10) + (row.in_corpus ? "" : "  not in the corpus");
        entry.update({{"reference_us", reference_us(shown)},
                      {"best_us", candidate_us(shown)},
                      {"speedup", row.best->getScore()},
                      {"best", id},
                      {"best_in_corpus", row.in_corpus}});
      } else {
        text += pad(std::to_string(row.tried), 43, true) + pad("0", 7, true) + "   none";
      }
      line(text);
      json_["tasks"].push_back(entry);
    }
    if (solved > 0)
      line("  " + std::to_string(not_in_corpus) + " of " + std::to_string(solved) +
           " best variants are not in the corpus");
    line();
  }

  void print_stages() {
    line("Stages");
    json_["stages"] = ordered_json::array();
    for (const char* name : {"corpus", "self_supervised", "contrastive", "comparison"}) {
      const auto found = stages_.find(name);
      if (found == stages_.end()) continue;
      const stage_row& row = found->second;
      std::string shares;
      ordered_json outcomes = ordered_json::object();
      for (const auto& [outcome, count] : row.outcomes) {
        const double share = static_cast<double>(count) / std::max(1.0, row.all.samples);
        shares += "  " + outcome + " " + percent(share);
        outcomes[outcome] = share;
      }
      // The corpus enters the pool at once, so its groups have no meaningful order.
      const bool has_order = found->first != "corpus";
      line(pad("  " + std::string(name), 20) + pad(fixed(row.all.samples, 0) + " samples", 16) +
           "mean reward " + fixed(row.all.mean_reward(), 2) +
           (has_order ? "  ok at the end " + percent(row.last.share_ok()) : "") +
           (row.unknown > 0 ? "  and " + std::to_string(row.unknown) + " samples not judged" : ""));
      line("      " + shares);
      std::string rewards;
      std::string oks;
      ordered_json curve = ordered_json::array();
      for (const sample_sums& part : row.curve) {
        if (part.samples == 0 || !has_order) continue;
        rewards += pad(fixed(part.mean_reward(), 2), 7, true);
        oks += pad(fixed(100 * part.share_ok(), 0), 7, true);
        curve.push_back({{"samples", part.samples},
                         {"mean_reward", part.mean_reward()},
                         {"ok", part.share_ok()}});
      }
      if (curve.size() > 1) {
        line("        reward, by time " + rewards);
        line("        ok in %, by time" + oks);
      }
      json_["stages"].push_back(
          {{"stage", name},
           {"samples", row.all.samples},
           {"not_judged", row.unknown},
           {"mean_reward", row.all.mean_reward()},
           {"ok_at_end", has_order ? ordered_json(row.last.share_ok()) : ordered_json(nullptr)},
           {"outcomes", outcomes},
           {"curve", curve}});
    }
    line();
  }

  void print_comparison() {
    if (by_version_.size() < 2) return;
    const auto& before = by_version_.begin()->second;
    const auto& after = by_version_.rbegin()->second;
    std::vector<compared_task> tasks;
    for (const auto& [name, samples] : before) {
      if (after.contains(name)) tasks.push_back({name, samples, after.at(name)});
    }
    const comparison_result r = compare_policies(tasks, bootstrap_resamples, 1);
    line("The contrastive stage, judged afresh: version " +
         std::to_string(by_version_.begin()->first) + " before, " +
         std::to_string(by_version_.rbegin()->first) + " after");
    line(pad("  task", 26) + pad("before", 10, true) + pad("after", 10, true) +
         pad("ok before", 12, true) + pad("ok after", 12, true) +
         "   (speed-ups are geometric means)");
    ordered_json rows = ordered_json::array();
    for (const auto& row : r.tasks) {
      line(pad("  " + row.task, 26) + pad(fixed(std::exp(row.before), 2) + "x", 10, true) +
           pad(fixed(std::exp(row.after), 2) + "x", 10, true) +
           pad(percent(row.before_ok), 12, true) + pad(percent(row.after_ok), 12, true));
      rows.push_back({{"task", row.task},
                      {"before", row.before},
                      {"after", row.after},
                      {"before_ok", row.before_ok},
                      {"after_ok", row.after_ok}});
    }
    line("  mean log speed-up " + fixed(r.before, 3) + " before, " + fixed(r.after, 3) +
         " after: difference " + fixed(r.difference, 3) + ", 95 % interval [" + fixed(r.low, 3) +
         ", " + fixed(r.high, 3) + "]" +
         (r.low > 0    ? ""
          : r.high < 0 ? " (worse)"
                       : " (not distinguishable from zero)"));
    line();
    json_["comparison"] = {{"before_version", by_version_.begin()->first},
                           {"after_version", by_version_.rbegin()->first},
                           {"before", r.before},
                           {"after", r.after},
                           {"difference", r.difference},
                           {"interval", {r.low, r.high}},
                           {"tasks", rows}};
  }

  void print_busy(const std::map<std::string, double>& busy, double seconds, bool is_resumed) {
    if (busy.empty()) return;
    std::string shares;
    json_["busy"] = ordered_json::object();
    for (const auto& [room, share] : busy) {
      shares += "  " + room + " " + percent(share);
      json_["busy"][room] = share;
    }
    line("Busy shares over " + fixed(seconds, 0) + " s" +
         (is_resumed ? ", since the run was resumed" : ""));
    line(shares);
    json_["seconds"] = seconds;
  }

  // `hours`: the time to which the counts refer; 0 if it is unknown.
  void print_counts(double hours) {
    const auto with_rate = [&](std::uint64_t count, const std::string& what) {
      return std::to_string(count) + what +
             (hours > 0 ? ", " + fixed(static_cast<double>(count) / hours, 0) + " an hour" : "");
    };
    line("  " + with_rate(evaluated_, " programs judged") + "; " +
         with_rate(timed_, " of them timed"));
    line("  " + with_rate(measurements_, " measurements kept") +
         ", repeats and those of the comparison included");
    json_["judged"] = evaluated_;
    json_["timed"] = timed_;
    json_["measurements"] = measurements_;
  }

  pool_inspector pool_;
  std::map<task_id, std::string> names_;
  std::map<place, task_row> tasks_;
  std::map<std::string, stage_row> stages_;
  std::uint64_t evaluated_ = 0;     // variants that were judged, counted once per device type
  std::uint64_t timed_ = 0;         // variants among them with at least one measurement
  std::uint64_t measurements_ = 0;  // measurements, those of comparisons included
  std::map<std::uint64_t, std::map<std::string, std::vector<compared_sample>>> by_version_;
  std::set<std::string> device_types_;
  std::string text_;
  ordered_json json_ = ordered_json::object();
};

}  // namespace

std::map<std::string, double> busy_shares(const node_snapshot& snapshot) {
  std::map<std::string, std::pair<double, double>> sums;
  for (const auto& [name, status] : snapshot.actors) {
    const std::string room(view(status->getRoom()));
    if (room == "queue" || status->getAliveSeconds() <= 0) continue;
    sums[room].first += status->getBusySeconds();
    sums[room].second += status->getAliveSeconds();
    if (const auto before = snapshot.earlier.find(name); before != snapshot.earlier.end()) {
      sums[room].first += before->second.busy_seconds;
      sums[room].second += before->second.alive_seconds;
    }
    for (const auto number : status->getNumbers()) {
      if (view(number.getName()) != "leased_seconds") continue;
      sums[room + " leased"].first += number.getValue();
      sums[room + " leased"].second += status->getAliveSeconds();
    }
  }
  std::map<std::string, double> shares;
  for (const auto& [room, sum] : sums) shares[room] = sum.first / sum.second;
  return shares;
}

run_report make_report(const std::filesystem::path& pool, const std::map<std::string, double>& busy,
                       double seconds, bool is_resumed) {
  return reporter(pool).make(busy, seconds, is_resumed);
}

}  // namespace hone
