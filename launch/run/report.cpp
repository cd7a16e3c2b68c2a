#include "launch/run/report.hpp"

#include <algorithm>
#include <cmath>

#include "launch/printing.hpp"
#include "launch/run/comparison.hpp"
#include "launch/run/run_results.hpp"
#include "messages/measurements.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t bootstrap_resamples = 10000;
constexpr std::size_t most_unlearned_shown = 4;
// Share of unparsable samples beyond which a policy has not learned to write programs.
constexpr double mostly_unparsable = 0.7;

class reporter {
 public:
  explicit reporter(const std::filesystem::path& pool) : found_(read_results(pool)) {}

  run_report make(const std::map<std::string, double>& busy, double seconds, bool is_resumed) {
    const auto is_simulated = [](const std::string& type) { return type.starts_with("simulated"); };
    if (std::any_of(found_.device_types.begin(), found_.device_types.end(), is_simulated))
      line("Simulated devices have made up their outcomes and scores.\n");
    print_tasks();
    print_stages();
    print_comparison();
    print_busy(busy, seconds, is_resumed);
    print_counts(is_resumed ? 0 : seconds / 3600);
    return {text_, json_};
  }

 private:
  void line(const std::string& s = "") { text_ += s + "\n"; }

  void print_tasks() {
    line("Tasks");
    line(pad("  task", 26) + pad("reference", 12, true) + pad("best", 12, true) +
         pad("speed-up", 11, true) + pad("tried", 8, true) + pad("ok", 7, true) +
         "   best variant");
    json_["tasks"] = ordered_json::array();
    std::size_t not_in_corpus = 0;
    std::size_t solved = 0;
    std::map<std::string, place> in_order;
    for (const auto& [where, row] : found_.tasks) in_order[found_.name_of(where)] = where;
    for (const auto& [name, where] : in_order) {
      const task_row& row = found_.tasks[where];
      ordered_json entry = {{"task", found_.names[where.task]},
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
                "   " + id.substr(0, 10) + (row.in_corpus ? "" : "  not in the corpus") +
                (row.best->getScore() < 1 ? "  slower than the reference" : "");
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
      line("  " + std::to_string(solved - not_in_corpus) + " of " + std::to_string(solved) +
           " best variants are documents of the corpus, " + std::to_string(not_in_corpus) +
           " are new");
    line();
  }

  void print_stages() {
    line("Stages");
    json_["stages"] = ordered_json::array();
    for (const char* name : {"corpus", "self_supervised", "contrastive", "comparison"}) {
      const auto found = found_.stages.find(name);
      if (found == found_.stages.end()) continue;
      const stage_row& row = found->second;
      ordered_json outcomes = ordered_json::object();
      for (const auto& [outcome, count] : row.outcomes) outcomes[outcome] = count / row.all.samples;
      // The corpus enters the pool at once, and a comparison's policies take turns: their groups
      // have no meaningful order.
      const bool has_order = found->first != "corpus" && found->first != "comparison";
      line(pad("  " + std::string(name), 20) + pad(fixed(row.all.samples, 0) + " samples", 16) +
           "mean reward " + fixed(row.all.mean_reward(), 2) +
           (has_order ? "  ok at the end " + percent(row.last.share_ok()) : "") +
           (row.unknown > 0 ? "  and " + std::to_string(row.unknown) + " samples not judged" : ""));
      line("        " + shares_text(row.outcomes));
      print_remark(found->first, row);
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

  // Says what a person may do about a stage that went badly.
  void print_remark(const std::string& stage, const stage_row& row) {
    const auto unparsable = row.outcomes.find(std::string(name_of(Outcome::UNPARSABLE)));
    if (stage == "corpus" && !found_.unlearned.empty()) {
      std::string text = "        not learned:";
      std::size_t shown = 0;
      for (const auto& [variant, outcome] : found_.unlearned) {
        if (shown++ == most_unlearned_shown) break;
        text += (shown > 1 ? ", " : " ") + to_string(variant).substr(0, 10) + " " +
                std::string(name_of(outcome));
      }
      if (found_.unlearned.size() > most_unlearned_shown)
        text += " and " + std::to_string(found_.unlearned.size() - most_unlearned_shown) + " more";
      line(text);
    } else if (stage != "corpus" && unparsable != row.outcomes.end() &&
               unparsable->second > mostly_unparsable * row.all.samples) {
      line(
          "        the policy hardly writes programs: it needs more sft.updates, or more or "
          "shorter documents");
    }
  }

  static std::string difference_text(const comparison_result& r) {
    return "  mean log speed-up " + fixed(r.before, 3) + " before, " + fixed(r.after, 3) +
           " after: difference " + fixed(r.difference, 3) + ", 95 % interval [" + fixed(r.low, 3) +
           ", " + fixed(r.high, 3) + "]" +
           (r.low > 0    ? ""
            : r.high < 0 ? " (worse)"
                         : " (not distinguishable from zero)");
  }

  void print_comparison() {
    if (found_.by_version.size() < 2) return;
    const auto& before = found_.by_version.begin()->second;
    const auto& after = found_.by_version.rbegin()->second;
    std::vector<compared_task> tasks;
    for (const auto& [name, samples] : before) {
      if (after.contains(name)) tasks.push_back({name, samples, after.at(name)});
    }
    const comparison_result r = compare_policies(tasks, bootstrap_resamples, 1);
    line("The contrastive stage, judged afresh: version " +
         std::to_string(found_.by_version.begin()->first) + " before, " +
         std::to_string(found_.by_version.rbegin()->first) + " after");
    line(pad("  task", 26) + pad("before", 10, true) + pad("after", 10, true) +
         pad("ok before", 12, true) + pad("ok after", 12, true) + pad("not ok as", 12, true) +
         "   (speed-ups are geometric means)");
    ordered_json rows = ordered_json::array();
    for (const auto& row : r.tasks) {
      // Without an ok sample, there is no speed-up to show.
      const auto shown = [](double log_speedup, double ok) {
        return pad(ok > 0 ? fixed(std::exp(log_speedup), 2) + "x" : "none ok", 10, true);
      };
      line(pad("  " + row.task, 26) + shown(row.before, row.before_ok) +
           shown(row.after, row.after_ok) + pad(percent(row.before_ok), 12, true) +
           pad(percent(row.after_ok), 12, true) + pad(fixed(row.failed, 2) + "x", 12, true));
      rows.push_back({{"task", row.task},
                      {"before", row.before},
                      {"after", row.after},
                      {"before_ok", row.before_ok},
                      {"after_ok", row.after_ok},
                      {"not_ok_as", row.failed}});
    }
    line(r.before_ok + r.after_ok == 0 ? "  nothing to compare: no sample of either policy is ok"
                                       : difference_text(r));
    line("  ok " + percent(r.before_ok) + " before, " + percent(r.after_ok) + " after" +
         (r.after_ok < r.before_ok ? "; the speed-ups hide this loss: what is not ok counts as "
                                     "the task's slowest that is"
                                   : ""));
    line();
    json_["comparison"] = {{"before_version", found_.by_version.begin()->first},
                           {"after_version", found_.by_version.rbegin()->first},
                           {"before", r.before},
                           {"after", r.after},
                           {"difference", r.difference},
                           {"interval", {r.low, r.high}},
                           {"before_ok", r.before_ok},
                           {"after_ok", r.after_ok},
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
    line("Counts");
    line("  " + std::to_string(found_.samples) + " samples, the corpus included" +
         (found_.left_out_samples > 0
              ? "; " + std::to_string(found_.left_out_samples) +
                    " of comparisons that were interrupted, or made before the run "
                    "was extended, are left out above"
              : ""));
    const std::uint64_t evaluations = found_.judged + found_.unparsable + found_.infrastructure;
    const std::uint64_t variants =
        found_.evaluated_variants + found_.compared_variants + found_.waiting_variants;
    line("  " + std::to_string(variants) +
         " variants, repeats counted once: " + std::to_string(found_.evaluated_variants) +
         " evaluated, " + std::to_string(found_.compared_variants) + " in the comparison only, " +
         std::to_string(found_.waiting_variants) + " not yet");
    line("  " + std::to_string(evaluations) +
         " evaluations, each variant once per type of device: " + std::to_string(found_.judged) +
         " judged, " + std::to_string(found_.unparsable) + " unparsable, " +
         std::to_string(found_.infrastructure) + " failed by the infrastructure");
    line("  " + with_rate(found_.judged, " programs judged") + "; " +
         with_rate(found_.timed, " of them timed") + "; " + std::to_string(found_.new_programs) +
         " of them not in the corpus");
    if (found_.new_programs == 0 && found_.stages.size() > found_.stages.count("corpus"))
      line("  no new program: whatever the policy wrote and was judged, the corpus has");
    line("  " + with_rate(found_.measurements, " measurements kept") +
         ", repeats and those of the comparison included");
    json_["samples"] = found_.samples;
    json_["documents_not_learned"] = found_.unlearned.size();
    json_["left_out_samples"] = found_.left_out_samples;
    json_["variants"] = {{"evaluated", found_.evaluated_variants},
                         {"compared_only", found_.compared_variants},
                         {"waiting", found_.waiting_variants}};
    json_["judged"] = found_.judged;
    json_["unparsable"] = found_.unparsable;
    json_["infrastructure"] = found_.infrastructure;
    json_["timed"] = found_.timed;
    json_["new_programs"] = found_.new_programs;
    json_["measurements"] = found_.measurements;
  }

  run_results found_;
  std::string text_;
  ordered_json json_ = ordered_json::object();
};

}  // namespace

run_report make_report(const std::filesystem::path& pool, const std::map<std::string, double>& busy,
                       double seconds, bool is_resumed) {
  return reporter(pool).make(busy, seconds, is_resumed);
}

}  // namespace hone
