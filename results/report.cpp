#include "results/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/comparison.hpp"
#include "results/printing.hpp"
#include "results/report_comparison.hpp"
#include "results/run_results.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t max_unlearned_shown = 4;
// Share of unparsable samples beyond which a policy has not learned to write programs.
constexpr double mostly_unparsable = 0.7;

class reporter {
 public:
  explicit reporter(const run_results& found) : found_(found) {}

  run_report make(const run_report& activity, double hours) {
    const auto is_made_up = [](const std::string& type) {
      return device_kind_of(type) == "simulated";
    };
    if (std::any_of(found_.device_types.begin(), found_.device_types.end(), is_made_up))
      line("Simulated devices have made up their outcomes and scores.\n");
    print_tasks();
    print_stages();
    print_validations();
    text_ += describe_comparison(found_, json_);
    text_ += describe_held_out(found_, json_);
    text_ += activity.text;
    if (!activity.json.is_null()) json_.update(activity.json);
    print_counts(hours);
    return {text_, json_};
  }

 private:
  void line(const std::string& s = "") { text_ += s + "\n"; }

  void print_tasks() {
    line("Tasks");
    line(pad("  task", 26) + pad("reference", 12, true) + pad("best", 12, true) +
         pad("speed-up", 11, true) + pad("measured", 19, true) + pad("tried", 8, true) +
         pad("ok", 7, true) + "   best variant");
    json_["tasks"] = ordered_json::array();
    std::map<std::string_view, std::size_t> origins;  // of the best variants
    std::size_t measured_once = 0;
    std::size_t solved = 0;
    std::map<std::string, place> in_order;
    for (const auto& [where, row] : found_.tasks) in_order[found_.name_of(where)] = where;
    for (const auto& [name, where] : in_order) {
      const task_row& row = found_.tasks.at(where);
      ordered_json entry = {{"task", found_.names.at(where.task)},
                            {"device_type", where.device_type},
                            {"tried", row.tried},
                            {"ok", row.ok}};
      std::string text = pad("  " + name + " ", 26);
      if (row.best) {
        const auto shown = measurement_of_score(*row.best);
        const std::string id = to_string(variant_id(row.best->getVariantId()));
        const headline score = headline_of(*row.best);
        ++solved;
        ++origins[origin_of(row)];
        measured_once += score.later == 0 ? 1 : 0;
        text += pad(fixed(reference_us(shown), 1) + " us", 12, true) +
                pad(fixed(candidate_us(shown), 1) + " us", 12, true) +
                pad(fixed(score.speedup, 2) + "x", 11, true) + pad(range_text(score), 19, true) +
                pad(std::to_string(row.tried), 8, true) + pad(std::to_string(row.ok), 7, true) +
                "   " + id.substr(0, 10) +
                (row.in_corpus ? "" : "  " + std::string(origin_of(row))) +
                (score.speedup < 1 ? "  slower than the reference" : "");
        entry.update({{"reference_us", reference_us(shown)},
                      {"best_us", candidate_us(shown)},
                      {"speedup", score.speedup},
                      {"speedup_range", {score.lowest, score.highest}},
                      {"measurement_count", score.measurements},
                      {"later_speedup",
                       score.later > 0 ? ordered_json(score.later_speedup) : ordered_json(nullptr)},
                      {"best", id},
                      {"best_in_corpus", row.in_corpus},
                      {"best_is_reference", row.is_reference}});
      } else {
        text += pad(std::to_string(row.tried), 62, true) + pad(std::to_string(row.ok), 7, true) +
                (row.ok > 0 ? "   not timed" : "   none");
      }
      line(text);
      print_fixed_tensors(where.task, entry);
      json_["tasks"].push_back(entry);
    }
    if (solved > 0) print_origins(solved, origins, measured_once);
    line();
  }

  static std::string_view origin_of(const task_row& row) {
    return row.in_corpus ? "of the corpus" : row.is_reference ? "the reference itself" : "new";
  }

  void print_origins(std::size_t solved, std::map<std::string_view, std::size_t>& origins,
                     std::size_t measured_once) {
    line("  of " + counted(solved, "best variant") + ": " +
         std::to_string(origins["of the corpus"]) + " of the corpus, " +
         std::to_string(origins["the reference itself"]) + " the reference itself, " +
         std::to_string(origins["new"]) + " new");
    line(
        "  a speed-up is the median of the variant's measurements; those after the first decide "
        "which variant is the best" +
        (measured_once > 0 ? "; " + counted(measured_once, "variant") + " had only one measurement"
                           : ""));
  }

  void print_fixed_tensors(const task_id& of, ordered_json& entry) {
    const auto fixed = found_.fixed.find(of);
    if (fixed == found_.fixed.end()) return;
    line("    the same in every call: " + fixed->second);
    entry["fixed"] = fixed->second;
  }

  static std::string summary_of(const stage_row& row, const std::optional<double>& mean_log) {
    if (row.all.all.samples == 0) return "";
    return "mean log speed-up " + (mean_log ? fixed(*mean_log, 2) : "(not timed)") + "  ok " +
           percent(row.all.all.share_ok());
  }

  void print_stages() {
    line("Stages");
    json_["stages"] = ordered_json::array();
    for (const char* name : {"corpus", "self_supervised", "contrastive", "comparison"}) {
      const auto found = found_.stages.find(name);
      if (found == found_.stages.end()) continue;
      const stage_row& row = found->second;
      ordered_json outcomes = ordered_json::object();
      for (const auto& [outcome, count] : row.outcomes)
        outcomes[outcome] = count / row.all.all.samples;
      // The corpus enters the pool at once, and a comparison's policies take turns: their groups
      // have no meaningful order.
      const bool has_order = found->first != "corpus" && found->first != "comparison";
      // A run that was stopped may have judged nothing of the last quarter.
      const bool has_end = has_order && row.last.all.samples > 0;
      const std::optional<double> mean_log = row.all.mean_log();
      line(pad("  " + std::string(name), 20) + pad(fixed(row.all.all.samples, 0) + " samples", 16) +
           summary_of(row, mean_log) +
           (has_end ? ", at the end " + percent(row.last.all.share_ok()) : "") +
           (row.unknown > 0 ? "  and " + std::to_string(row.unknown) + " samples not judged" : ""));
      if (!row.outcomes.empty()) line("        " + shares_text(row.outcomes));
      print_remark(found->first, row);
      std::string logs;
      std::string oks;
      ordered_json curve = ordered_json::array();
      for (const scored_sums& part : row.curve) {
        if (part.all.samples == 0 || !has_order) continue;
        const double part_log = part.mean_log().value_or(0);  // what a policy writes is timed
        logs += pad(fixed(part_log, 2), 7, true);
        oks += pad(fixed(100 * part.all.share_ok(), 0), 7, true);
        curve.push_back({{"samples", part.all.samples},
                         {"mean_log_speedup", part_log},
                         {"ok", part.all.share_ok()}});
      }
      if (curve.size() > 1) {
        line("        log speed-up, by time" + logs);
        line("        ok in %, by time     " + oks);
      }
      json_["stages"].push_back(
          {{"stage", name},
           {"samples", row.all.all.samples},
           {"not_judged", row.unknown},
           {"mean_log_speedup", mean_log ? ordered_json(*mean_log) : ordered_json(nullptr)},
           {"ok", row.all.all.share_ok()},
           {"ok_at_end", has_end ? ordered_json(row.last.all.share_ok()) : ordered_json(nullptr)},
           {"outcomes", outcomes},
           {"sources", found->first == "corpus" ? ordered_json(nullptr) : sources_json(row)},
           {"beside_shown", beside_shown_json(row.gain)},
           {"revisions", revisions_json(row)},
           {"curve", curve}});
      if (found->first != "corpus") print_sources(row);
      if (found->first == "contrastive") print_steps();
      print_revisions(row);
    }
    line("  mean log speed-up: the mean over tasks; what is not ok counts as " +
         fixed(failed_speedup, 2) + "x, what is inconclusive does not count");
    print_losses();
    line();
  }

  void print_steps() {
    const std::uint64_t planned = found_.planned_contrastive_steps;
    json_["contrastive"] = {{"steps", found_.contrastive_steps},
                            {"planned_steps", planned},
                            {"steps_without_signal", found_.steps_without_signal}};
    if (found_.is_contrastive_over && found_.contrastive_steps < planned)
      line("        " + std::to_string(found_.contrastive_steps) + " of " +
           counted(planned, "step") + ": contrastive.minutes ended the stage");
    if (found_.steps_without_signal == 0) return;
    line("        " + std::to_string(found_.steps_without_signal) + " of " +
         std::to_string(found_.contrastive_steps) +
         " steps changed nothing: in none of their groups do rewards differ");
  }

  void print_validations() {
    if (found_.validations.empty()) return;
    line("Held-out tasks while the policy trained: greedy answers, measured briefly");
    line(
        "  version  tokens trained on    ok  of answers  copies  mean log speed-up of ok  by tier");
    json_["validations"] = ordered_json::array();
    for (const auto& [reported, numbers] : found_.validations) {
      const auto number = [&, of = &numbers](const std::string& name) {
        const auto found = of->find("validation_" + name);
        return found == of->end() ? 0 : found->second;
      };
      const auto version = static_cast<std::uint64_t>(number("version"));
      const auto trained = found_.trained_tokens.find(version);
      const double tokens = trained == found_.trained_tokens.end() ? 0 : trained->second;
      std::string tiers;
      ordered_json row = {{"version", version}, {"tokens", tokens}};
      for (const auto& [name, value] : numbers) {
        const std::string key = name.substr(std::string("validation_").size());
        row[key] = value;
        if (key.starts_with("tier_"))
          tiers += "  " + key.substr(5, key.size() - 8) + ": " + percent(value);
      }
      line(pad(std::to_string(version), 9, true) + pad(fixed(tokens / 1e6, 2) + "M", 19, true) +
           pad(percent(number("ok")), 8, true) + pad(fixed(number("answers"), 0), 10, true) +
           pad(percent(number("copies")), 9, true) +
           pad(fixed(number("log_speedup"), 3), 25, true) + tiers);
      json_["validations"].push_back(row);
    }
    line();
  }

  // Says how many samples were written anew, and whether they improve on what their prompts showed.
  void print_sources(const stage_row& row) {
    std::map<std::string, double> counts;
    double judged = 0;
    for (const sample_sums& its : row.by_source) judged += its.samples;
    std::string text = "        programs:";
    for (std::size_t i = 0; i < sample_sources; ++i) {
      const sample_sums& its = row.by_source.at(i);
      constexpr std::array<const char*, sample_sources> said = {
          "none",          "an exemplar that was shown", "of the corpus",
          "the reference", "known from before",          "new"};
      text += std::string(i > 0 ? "," : "") + " " + percent(judged > 0 ? its.samples / judged : 0) +
              " " + said.at(i);
    }
    const sample_sums& fresh = row.by_source.at(static_cast<std::size_t>(sample_source::fresh));
    line(text + " (" + percent(fresh.share_ok()) + " of these ok)");
    if (row.gain.samples > 0)
      line("        compared with the fastest exemplar shown: " +
           percent(row.gain.faster / row.gain.samples) +
           " of the ok samples are faster, mean log gain " +
           fixed(row.gain.log_gain / row.gain.samples, 2));
  }

  void print_revisions(const stage_row& row) {
    for (const auto& [turn, its] : row.revisions)
      line("        turn " + std::to_string(turn + 1) + ": " + fixed(its.samples, 0) +
           " samples that were to better an attempt, " + percent(its.ok / its.samples) + " ok, " +
           percent(its.better / its.samples) + " better than it");
  }
  static ordered_json revisions_json(const stage_row& row) {
    ordered_json turns = ordered_json::array();
    for (const auto& [turn, its] : row.revisions)
      turns.push_back(
          {{"turn", turn + 1}, {"samples", its.samples}, {"ok", its.ok}, {"better", its.better}});
    return turns;
  }

  static ordered_json sources_json(const stage_row& row) {
    ordered_json sources = ordered_json::object();
    for (std::size_t i = 0; i < sample_sources; ++i)
      sources[std::string(name_of(static_cast<sample_source>(i)))] = {
          {"samples", row.by_source.at(i).samples}, {"ok", row.by_source.at(i).ok}};
    return sources;
  }
  static ordered_json beside_shown_json(const beside_shown& gain) {
    if (gain.samples == 0) return nullptr;
    return {{"samples", gain.samples},
            {"faster", gain.faster / gain.samples},
            {"mean_log_gain", gain.log_gain / gain.samples}};
  }

  // Says what was written or computed in vain.
  void print_losses() {
    std::uint64_t dropped = 0;
    std::string by_type;
    for (const auto& [type, count] : found_.dropped_groups) {
      dropped += count;
      by_type += (by_type.empty() ? "" : ", ") + std::to_string(count) + " on " + type;
    }
    if (dropped > 0)
      line("  " + counted(dropped, "group") + " dropped: too old to train on when judged" +
           (found_.dropped_groups.size() > 1 ? " (" + by_type + ")" : "") +
           "; pool.max_groups bounds how many are written ahead, pool.max_lag how old they may be");
    if (found_.skipped_updates > 0)
      line("  " + fixed(found_.skipped_updates, 0) +
           " updates skipped: their gradient was not finite");
    json_["dropped_groups"] = found_.dropped_groups;
    json_["skipped_updates"] = found_.skipped_updates;
  }

  // Says what a person may do about a stage that went badly.
  void print_remark(const std::string& stage, const stage_row& row) {
    const auto unparsable = row.outcomes.find(std::string(name_of(Outcome::UNPARSABLE)));
    if (stage == "corpus" && !found_.unlearned.empty()) {
      std::string text = "        not learned:";
      std::size_t shown = 0;
      for (const auto& [variant, outcome] : found_.unlearned) {
        if (shown++ == max_unlearned_shown) break;
        text += (shown > 1 ? ", " : " ") + to_string(variant).substr(0, 10) + " " +
                std::string(name_of(outcome));
      }
      if (found_.unlearned.size() > max_unlearned_shown)
        text += " and " + std::to_string(found_.unlearned.size() - max_unlearned_shown) + " more";
      line(text);
    } else if (stage != "corpus" && unparsable != row.outcomes.end() &&
               unparsable->second > mostly_unparsable * row.all.all.samples) {
      line(
          "        the policy hardly writes programs: one that learns here needs more sft.updates, "
          "or "
          "more or shorter documents; for one behind a server, the log says how it answers");
    }
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
              : "") +
         (found_.given_up_samples > 0
              ? "; " + std::to_string(found_.given_up_samples) +
                    " were not judged, because nothing more was to be trained on"
              : "") +
         (found_.validation_samples > 0
              ? "; " + std::to_string(found_.validation_samples) + " of validations as well"
              : ""));
    const std::uint64_t evaluations = found_.judged + found_.unparsable + found_.infrastructure;
    const std::uint64_t variants =
        found_.evaluated_variants + found_.compared_variants + found_.waiting_variants;
    line("  " + std::to_string(variants) +
         " variants, repeats counted once: " + std::to_string(found_.evaluated_variants) +
         " evaluated, " + std::to_string(found_.compared_variants) + " in the comparison only, " +
         std::to_string(found_.waiting_variants) + " not evaluated");
    line("  " + std::to_string(evaluations) +
         " evaluations, each variant once per type of device: " + std::to_string(found_.judged) +
         " judged, " + std::to_string(found_.unparsable) + " unparsable, " +
         std::to_string(found_.infrastructure) + " failed by the infrastructure");
    line("  " + with_rate(found_.judged, " programs judged") + "; " +
         with_rate(found_.timed, " of them timed") + "; " + std::to_string(found_.new_programs) +
         " of them new");
    if (found_.new_programs == 0 && found_.stages.size() > found_.stages.count("corpus"))
      line("  no new program: all are of the corpus or a reference");
    line("  " + with_rate(found_.measurements, " measurements kept") +
         ", repeats and those of the comparison included");
    json_["samples"] = found_.samples;
    json_["documents_not_learned"] = found_.unlearned.size();
    json_["left_out_samples"] = found_.left_out_samples;
    json_["given_up_samples"] = found_.given_up_samples;
    json_["validation_samples"] = found_.validation_samples;
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

  const run_results& found_;
  std::string text_;
  ordered_json json_ = ordered_json::object();
};

}  // namespace

run_report make_report(const std::filesystem::path& pool, const run_report& activity,
                       double hours) {
  return make_report(read_results(pool), activity, hours);
}

run_report make_report(const run_results& results, const run_report& activity, double hours) {
  return reporter(results).make(activity, hours);
}

}  // namespace hone
