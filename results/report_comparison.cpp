#include "results/report_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "results/comparison.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t bootstrap_resamples = 10000;

class comparison_report {
 public:
  comparison_report(const run_results& of, ordered_json& json) : of_(of), json_(json) {}
  const std::string& text() const { return text_; }

  void print_comparison() {
    const auto sampled = of_.compared.find(schema::Draw::Arm::SAMPLED);
    if (sampled == of_.compared.end() || sampled->second.size() < 2) return;
    const std::vector<compared_task> tasks = tasks_of(sampled->second);
    const comparison_result r = compare_policies(tasks, bootstrap_resamples, 1);
    const std::uint64_t before = sampled->second.begin()->first;
    const std::uint64_t after = sampled->second.rbegin()->first;
    line("The contrastive stage, judged afresh: version " + std::to_string(before) + " before, " +
         std::to_string(after) + " after");
    line(pad("  task", 26) + pad("ok before", 11, true) + pad("ok after", 11, true) +
         pad("before", 10, true) + pad("after", 10, true) + pad("best before", 13, true) +
         pad("best after", 13, true) + pad("new after", 11, true));
    ordered_json rows = ordered_json::array();
    for (const auto& row : r.tasks) {
      line(pad("  " + row.task, 26) + pad(percent(row.before.ok), 11, true) +
           pad(percent(row.after.ok), 11, true) + speedup_of_ok(row.before) +
           speedup_of_ok(row.after) + pad(best_text(row.before), 13, true) +
           pad(best_text(row.after), 13, true) + pad(percent(row.after.new_share), 11, true));
      rows.push_back(
          {{"task", row.task}, {"before", to_json(row.before)}, {"after", to_json(row.after)}});
    }
    line("  (speed-ups are geometric means of the ok samples, and those of the best sample)");
    if (r.before.ok + r.after.ok == 0) {
      line("  nothing to compare: no sample of either policy is ok");
    } else {
      line("  mean log speed-up, what is not ok counted as " + fixed(failed_speedup, 2) +
           "x: " + fixed(r.before.log_score, 3) + " before, " + fixed(r.after.log_score, 3) +
           " after: " + difference_text(r));
      line("  ok " + percent(r.before.ok) + " before, " + percent(r.after.ok) +
           " after; of these, mean log speed-up " + fixed(r.before.log_of_ok, 3) + " before, " +
           fixed(r.after.log_of_ok, 3) + " after; best sample " + fixed(r.before.log_best, 3) +
           " before, " + fixed(r.after.log_best, 3) + " after");
    }
    const comparison_result originals =
        compare_policies(without_copies(tasks), bootstrap_resamples, 1);
    line("  without copies of shown exemplars (" + percent(r.before.copy_share) +
         " of the samples before, " + percent(r.after.copy_share) + " after): " +
         (originals.tasks.empty() ? "nothing is left to compare" : difference_text(originals)));
    json_["comparison"] = to_json(r);
    json_["comparison"].update({{"before_version", before},
                                {"after_version", after},
                                {"left_out", of_.inconclusive_compared},
                                {"without_copies", to_json(originals)},
                                {"tasks", rows}});
    print_arm(schema::Draw::Arm::BARE, "without exemplars in the prompt", "bare");
    print_arm(schema::Draw::Arm::GREEDY, "greedy", "greedy");
    if (of_.inconclusive_compared > 0)
      line("  " + counted(of_.inconclusive_compared, "sample") +
           " left out as inconclusive: unstable, or failed by the infrastructure");
    line();
  }

  // Shows what the policy can do, stage by stage, on tasks from which the run has not learned.
  void print_held_out() {
    const auto sampled = of_.held_out.find(schema::Draw::Arm::SAMPLED);
    if (sampled == of_.held_out.end()) return;
    const auto bare = of_.held_out.find(schema::Draw::Arm::BARE);
    const bool has_exemplars = bare != of_.held_out.end();
    line("Held-out tasks, of which the run has learned nothing, judged afresh");
    line(pad("  policy", 38) + pad("tokens", 9, true) + pad("samples", 9, true) +
         pad("ok", 9, true) + pad("solved", 9, true) + pad("speed-up", 10, true) +
         pad("best", 10, true) + pad("new and ok", 12, true) + pad("greedy ok", 11, true) +
         (has_exemplars ? pad("bare ok", 9, true) : ""));
    std::set<std::uint32_t> tiers;
    for (const auto& [task, tier] : of_.tiers) tiers.insert(tier);
    json_["held_out"] = ordered_json::array();
    for (const auto& [version, by_task] : sampled->second) {
      const auto name = of_.version_names.find(version);
      const std::string label =
          "version " + std::to_string(version) + ", " +
          (name != of_.version_names.end() ? name->second : std::string("at the end"));
      const auto trained = of_.trained_tokens.find(version);
      const double tokens = trained != of_.trained_tokens.end() ? trained->second : 0;
      ordered_json row = {{"version", version}, {"name", label}, {"tokens", tokens}};
      row.update(print_held_out_row(version, label, fixed(tokens / 1e6, 2) + "M", std::nullopt));
      ordered_json tasks = ordered_json::array();
      const std::map<std::string, const samples_by_task*> others = {
          {"greedy", held_out_by_task(schema::Draw::Arm::GREEDY, version)},
          {"bare", held_out_by_task(schema::Draw::Arm::BARE, version)}};
      for (const auto& [task, its] : by_task) {
        ordered_json of_task = to_json(summarize_samples(its));
        of_task["task"] = task;
        of_task["samples"] = its.size();
        if (const auto originals = without_copies(its); !originals.empty())
          of_task["without_copies"] = to_json(summarize_samples(originals));
        for (const auto& [arm, of_arm] : others) {
          if (of_arm != nullptr && of_arm->contains(task))
            of_task[arm] = to_json(summarize_samples(of_arm->at(task)));
        }
        tasks.push_back(of_task);
      }
      row["tasks"] = tasks;
      for (const std::uint32_t tier : tiers)
        row["tiers"].push_back(
            print_held_out_row(version, "  tier " + std::to_string(tier), "", tier));
      json_["held_out"].push_back(row);
    }
    line(
        "  (tokens: trained on so far; solved: tasks with an ok sample; geometric means of the ok "
        "samples, and of each task's best)");
    compare_on_held_out(sampled->second, "held_out_comparison",
                        has_exemplars ? "with exemplars" : "without exemplars");
    if (has_exemplars) compare_on_held_out(bare->second, "held_out_bare", "without exemplars");
    line();
  }

 private:
  using samples_by_task = std::map<std::string, std::vector<compared_sample>>;

  // Returns a version's samples for held-out tasks, or null if there are none.
  const samples_by_task* held_out_by_task(schema::Draw::Arm arm, std::uint64_t version) const {
    const auto of_arm = of_.held_out.find(arm);
    if (of_arm == of_.held_out.end()) return nullptr;
    const auto found = of_arm->second.find(version);
    return found != of_arm->second.end() ? &found->second : nullptr;
  }

  static std::string difference_text(const comparison_result& r) {
    return "difference " + fixed(r.difference, 3) + ", 95 % interval [" + fixed(r.low, 3) + ", " +
           fixed(r.high, 3) + "]" +
           (r.low > 0    ? ""
            : r.high < 0 ? " (worse)"
                         : " (not distinguishable from zero)");
  }

  static ordered_json to_json(const policy_summary& p) {
    return {{"ok", p.ok},
            {"solved", p.solved},
            {"log_speedup_of_ok", p.log_of_ok},
            {"log_speedup", p.log_score},
            {"log_speedup_of_best", p.log_best},
            {"new", p.new_share},
            {"copies", p.copy_share}};
  }
  static ordered_json to_json(const comparison_result& r) {
    return {{"before", to_json(r.before)},
            {"after", to_json(r.after)},
            {"difference", r.difference},
            {"interval", {r.low, r.high}}};
  }

  // Compares the policies before and after the contrastive stage, if there was one.
  void compare_on_held_out(const compared_samples& samples, const char* key,
                           const std::string& prompts) {
    if (!of_.before_contrastive) return;
    const auto before = samples.find(*of_.before_contrastive);
    if (before == samples.end() || std::next(before) == samples.end()) return;
    const std::vector<compared_task> tasks = tasks_of({*before, *samples.rbegin()});
    const comparison_result r = compare_policies(tasks, bootstrap_resamples, 1);
    if (r.before.ok + r.after.ok == 0) {
      line("  the contrastive stage, " + prompts + ": nothing to compare, no sample is ok");
      return;
    }
    line("  the contrastive stage, " + prompts + ": mean log speed-up " +
         fixed(r.before.log_score, 3) + " before, " + fixed(r.after.log_score, 3) +
         " after: " + difference_text(r));
    json_[key] = to_json(r);
  }

  static std::vector<compared_task> tasks_of(const compared_samples& samples) {
    std::vector<compared_task> tasks;
    if (samples.size() < 2) return tasks;
    const auto& after = samples.rbegin()->second;
    for (const auto& [name, before] : samples.begin()->second) {
      if (after.contains(name)) tasks.push_back({name, before, after.at(name)});
    }
    return tasks;
  }

  void print_arm(schema::Draw::Arm arm, const std::string& said, const char* key) {
    const auto found = of_.compared.find(arm);
    if (found == of_.compared.end()) return;
    const comparison_result r = compare_policies(tasks_of(found->second), bootstrap_resamples, 1);
    if (r.tasks.empty()) return;
    line("  " + said + ": ok " + percent(r.before.ok) + " before, " + percent(r.after.ok) +
         " after; mean log speed-up " + fixed(r.before.log_score, 3) + " before, " +
         fixed(r.after.log_score, 3) + " after: " + difference_text(r));
    json_["comparison"][key] = to_json(r);
  }

  static std::string speedup_of_ok(const policy_summary& p) {
    return pad(p.ok > 0 ? fixed(std::exp(p.log_of_ok), 2) + "x" : "none ok", 10, true);
  }
  static std::string best_text(const policy_summary& p) {
    return p.ok > 0 ? fixed(std::exp(p.log_best), 2) + "x" : "none ok";
  }

  // Returns the samples of a version for held-out tasks, or for those of a tier, by task.
  std::vector<const std::vector<compared_sample>*> held_out_samples(
      schema::Draw::Arm arm, std::uint64_t version, std::optional<std::uint32_t> tier) const {
    std::vector<const std::vector<compared_sample>*> chosen;
    const auto* by_task = held_out_by_task(arm, version);
    if (by_task == nullptr) return chosen;
    for (const auto& [task, samples] : *by_task) {
      const auto known = of_.tiers.find(task);
      if (!tier || (known != of_.tiers.end() && known->second == *tier)) chosen.push_back(&samples);
    }
    return chosen;
  }

  static std::optional<policy_summary> summary_of(
      const std::vector<const std::vector<compared_sample>*>& by_task) {
    if (by_task.empty()) return std::nullopt;
    std::vector<policy_summary> tasks;
    for (const auto* samples : by_task) tasks.push_back(summarize_samples(*samples));
    return mean_of(tasks);
  }

  // Prints what a version writes for held-out tasks, or for those of a tier, and returns it.
  ordered_json print_held_out_row(std::uint64_t version, const std::string& label,
                                  const std::string& tokens, std::optional<std::uint32_t> tier) {
    using Arm = schema::Draw::Arm;
    const auto sampled = held_out_samples(Arm::SAMPLED, version, tier);
    std::size_t samples = 0;
    for (const auto* its : sampled) samples += its->size();
    const policy_summary all = summary_of(sampled).value_or(policy_summary());
    const auto greedy = summary_of(held_out_samples(Arm::GREEDY, version, tier));
    const auto bare = summary_of(held_out_samples(Arm::BARE, version, tier));
    const bool has_bare = of_.held_out.contains(Arm::BARE);
    line(pad("  " + label, 38) + pad(tokens, 9, true) + pad(std::to_string(samples), 9, true) +
         pad(percent(all.ok), 9, true) + pad(percent(all.solved), 9, true) + speedup_of_ok(all) +
         pad(best_text(all), 10, true) + pad(percent(all.new_share), 12, true) +
         pad(greedy ? percent(greedy->ok) : "-", 11, true) +
         (has_bare ? pad(bare ? percent(bare->ok) : "-", 9, true) : ""));
    const auto json_of = [](const std::optional<policy_summary>& p) {
      return p ? to_json(*p) : ordered_json(nullptr);
    };
    ordered_json row = {
        {"sampled", to_json(all)}, {"greedy", json_of(greedy)}, {"bare", json_of(bare)}};
    if (tier) row["tier"] = *tier;
    return row;
  }

  void line(const std::string& s = "") { text_ += s + "\n"; }

  const run_results& of_;
  ordered_json& json_;
  std::string text_;
};

}  // namespace

std::string describe_comparison(const run_results& of, ordered_json& json) {
  comparison_report report(of, json);
  report.print_comparison();
  return report.text();
}

std::string describe_held_out(const run_results& of, ordered_json& json) {
  comparison_report report(of, json);
  report.print_held_out();
  return report.text();
}

}  // namespace hone
