#include "ui/parts/run_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/comparison.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "ui/code/highlight.hpp"
#include "ui/html/numbers.hpp"
#include "ui/plots/run_plots.hpp"
#include "ui/plots/speedup_plots.hpp"

namespace hone::parts {
namespace {

using html::element;
using nlohmann::ordered_json;

// "1.55x before, 3.32x after: 2.14x [1.53x, 4.09x]"
std::string comparison_sentence(const ordered_json& comparison) {
  const auto ratio = [](const ordered_json& log) { return ratio_of_log(log.get<double>()); };
  const double low = comparison["interval"][0];
  const double high = comparison["interval"][1];
  return ratio(comparison["before"]["log_speedup"]) + " before the contrastive stage, " +
         ratio(comparison["after"]["log_speedup"]) + " after: a factor of " +
         ratio(comparison["difference"]) + ", 95 % interval [" + ratio_of_log(low) + ", " +
         ratio_of_log(high) + "]" +
         (low > 0 || high < 0 ? "" : ", which is not distinguishable from none");
}

}  // namespace

element paragraph(std::string_view content) { return {"p", {}, {html::text(content)}}; }

element section(std::string_view title, std::vector<element> content) {
  element made("section", {}, {element("h2", {}, {html::text(title)})});
  for (element& part : content) made.add(std::move(part));
  return made;
}

element folded(std::string_view title, std::vector<element> content) {
  element made("details", {}, {element("summary", {}, {html::text(title)})});
  for (element& part : content) made.add(std::move(part));
  return made;
}

element prose(std::string_view content, std::size_t max_bytes) {
  const std::string_view shown = html::first_written(content, max_bytes);
  element made("pre", {{"class", "prose"}}, {html::text(shown)});
  if (shown.size() < content.size()) made.add(hidden_note(content.size() - shown.size()));
  return made;
}

std::string ratio_of_log(double log) { return speedup_text(std::exp(log)); }

html::url task_link(const run_results& results, const place& where) {
  const std::string& name = results.names.at(where.task);
  const bool is_unique = results.tasks_of_name.at(name) == 1;
  return html::url("/task")
      .segment(is_unique ? name : to_string(where.task))
      .query("on", where.device_type);
}

html::url variant_link(const variant_id& id) {
  return html::url("/variant").segment(to_string(id));
}

element summary(const run_view& run, std::string_view state) {
  std::size_t solved = 0;
  std::size_t fresh = 0;
  for (const auto& [where, row] : run.results.tasks) {
    if (!row.best) continue;
    ++solved;
    fresh += row.in_corpus || row.is_reference ? 0 : 1;
  }
  element made("section", {{"class", "summary"}}, {paragraph(state)});
  made.add(
      paragraph(count_text(solved) + " of " + counted(run.results.tasks.size(), "task") +
                " have a correct variant; " + count_text(fresh) +
                " of the best variants are new programs, which neither the corpus nor a reference "
                "has."));
  if (run.numbers.contains("comparison"))
    made.add(paragraph("Mean speed-up, where a sample that is not ok counts as 0.25x: " +
                       comparison_sentence(run.numbers["comparison"]) + "."));
  if (run.numbers.contains("held_out"))
    made.add(paragraph(
        "Held-out tasks: " + percent_text(run.numbers["held_out"].back()["sampled"]["ok"]) +
        " of the last policy's samples are ok."));
  const bool is_simulated =
      std::any_of(run.results.device_types.begin(), run.results.device_types.end(),
                  [](const auto& type) { return device_kind_of(type) == "simulated"; });
  if (is_simulated)
    made.add({"p",
              {{"class", "warning"}},
              {html::text("Simulated devices have made up the outcomes and scores of this run.")}});
  return made;
}

plots::learning_series series_of(const run_view& run) {
  plots::learning_series series{run.name, {}};
  for (const learning_point& point : run.curve)
    series.points.push_back(
        {static_cast<double>(point.last_version), point.mean_log, point.low, point.high});
  return series;
}

element learning(const std::vector<run_view>& runs) {
  std::vector<plots::learning_series> series;
  for (const run_view& run : runs) series.push_back(series_of(run));
  std::vector<plots::stage_border> borders;
  if (runs.size() == 1) {
    std::string stage;
    for (const learning_point& point : runs.front().curve) {
      if (point.stage != stage)
        borders.push_back({static_cast<double>(point.first_version), point.stage});
      stage = point.stage;
    }
  }
  return section(
      "Learning",
      {plots::figure(plots::learning_curve("Mean speed-up of the policy's samples", series, borders,
                                           "version of the policy"),
                     "Mean over tasks of the log speed-up of the samples that each version wrote; "
                     "a sample that "
                     "is not ok counts as 0.25x. The band is a 95 % interval over tasks. The "
                     "versions drew different tasks and prompts, so a comparison says more about "
                     "two of them.")});
}

element outcomes(const run_view& run) {
  std::vector<plots::outcome_point> points;
  for (const learning_point& point : run.curve) {
    plots::outcome_point made{.x = static_cast<double>(point.last_version)};
    for (std::size_t i = 0; i < plots::outcome_names.size(); ++i) {
      const auto found = point.outcomes.find(std::string(plots::outcome_names.at(i)));
      if (found != point.outcomes.end())
        made.counts.at(i) = static_cast<std::uint64_t>(found->second);
    }
    points.push_back(made);
  }
  return section("Outcomes",
                 {plots::figure(plots::outcome_shares("Outcomes of the policy's samples", points,
                                                      "version of the policy"),
                                "Shares of the samples by the version that wrote them.")});
}

// The tasks with a best variant, the largest speed-up first.
std::vector<std::pair<place, const task_row*>> tasks_by_gain(const run_results& results) {
  std::vector<std::pair<place, const task_row*>> tasks;
  for (const auto& [where, row] : results.tasks) {
    if (row.best) tasks.emplace_back(where, &row);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const auto& a, const auto& b) {
    return headline_of(*a.second->best).speedup > headline_of(*b.second->best).speedup;
  });
  return tasks;
}

std::string origin_of(const task_row& row) {
  return row.in_corpus ? "corpus" : row.is_reference ? "reference" : "new";
}

namespace {
std::optional<html::url> link_to(const run_view& run, const place& where) {
  if (!run.has_links) return std::nullopt;
  return task_link(run.results, where);
}
}  // namespace

element speedups(const run_view& run, std::size_t max_rows) {
  std::vector<plots::task_speedups> rows;
  std::vector<plots::table_row> table;
  for (const auto& [where, row] : tasks_by_gain(run.results)) {
    const schema::Evaluation::Reader e = *row->best;
    const headline score = headline_of(e);
    const auto shown = measurement_of_score(e);
    plots::task_speedups made{
        run.results.name_of(where), score.speedup, {}, {}, link_to(run, where)};
    for (const auto m : e.getMeasurements()) {
      if (m.getOutcome() == Outcome::OK) made.measurements.push_back(m.getScore());
    }
    // A baseline's tick lies where a variant as fast as it would be.
    const auto times = baselines_us(shown);
    for (const auto& [name, us] : times) {
      if (name != "eager" && us > 0) made.baselines.push_back({name, reference_us(shown) / us});
    }
    rows.push_back(std::move(made));
    if (table.size() == max_rows) continue;
    table.push_back({{run.results.name_of(where), duration_text(reference_us(shown)),
                      duration_text(candidate_us(shown)), speedup_text(score.speedup),
                      range_text(score), count_text(row->tried), count_text(row->ok),
                      origin_of(*row), short_id(variant_id(e.getVariantId()))},
                     link_to(run, where)});
    if (run.has_links) table.back().links.emplace(8, variant_link(variant_id(e.getVariantId())));
  }
  std::size_t unsolved = 0;
  for (const auto& [where, row] : run.results.tasks) unsolved += row.best ? 0 : 1;
  std::vector<element> parts;
  parts.push_back(plots::figure(
      plots::speedups_by_task("Speed-up of the best variant of each task", rows),
      "The large mark is the median over the variant's measurements, a small dot one measurement, "
      "a tick a baseline; 1x is PyTorch's eager mode. A variant's prepare() works on the weights "
      "alone and is not timed."));
  parts.push_back(plots::wide_table(
      {"task", "reference", "best", "speed-up", "measured", "tried", "ok", "origin", "variant"},
      table));
  if (rows.size() > table.size())
    parts.push_back(paragraph("The table leaves out " +
                              counted(rows.size() - table.size(), "task with a smaller speed-up") +
                              "."));
  if (unsolved > 0)
    parts.push_back(paragraph(counted(unsolved, "task") + " without a timed variant."));
  return section("Tasks", std::move(parts));
}

element failures(const run_view& run, std::size_t max_rows) {
  using entry = std::pair<std::pair<Outcome, std::string>, failure_row>;
  std::vector<entry> rows(run.results.failures.begin(), run.results.failures.end());
  std::stable_sort(rows.begin(), rows.end(), [](const entry& a, const entry& b) {
    return a.second.evaluations > b.second.evaluations;
  });
  std::uint64_t all = 0;
  for (const entry& row : rows) all += row.second.evaluations;
  std::vector<plots::table_row> table;
  for (std::size_t i = 0; i < std::min(rows.size(), max_rows); ++i) {
    const auto& [reason, row] = rows[i];
    table.push_back(
        {{std::string(name_of(reason.first)), reason.second, short_id(row.example),
          count_text(row.evaluations),
          percent_text(static_cast<double>(row.evaluations) / static_cast<double>(all))},
         std::nullopt});
    if (!run.has_links) continue;
    table.back().link = html::url("/failures").query("outcome", name_of(reason.first));
    table.back().links.emplace(2, variant_link(row.example));
  }
  if (table.empty()) return section("Failures", {paragraph("No evaluation failed.")});
  return section(
      "Failures",
      {paragraph("The most frequent reasons of " + count_text(all) +
                 " failed evaluations, of documents of the corpus and of the policy's variants. A "
                 "variant is evaluated once, however often it is written. Numbers and names in "
                 "messages are left out."),
       plots::wide_table({"outcome", "message", "for example", "evaluations", "share"}, table, 3)});
}

element sources(const run_view& run) {
  constexpr std::array<sample_source, 5> shown = {sample_source::shown, sample_source::corpus,
                                                  sample_source::reference, sample_source::known,
                                                  sample_source::fresh};
  std::vector<plots::table_row> table;
  for (const auto& [stage, row] : run.results.stages) {
    double judged = 0;
    for (const sample_sums& its : row.by_source) judged += its.samples;
    if (judged == 0) continue;
    std::vector<std::string> cells = {stage, count_text(static_cast<std::uint64_t>(judged))};
    for (const sample_source source : shown)
      cells.push_back(
          percent_text(row.by_source.at(static_cast<std::size_t>(source)).samples / judged));
    const sample_sums& fresh = row.by_source.at(static_cast<std::size_t>(sample_source::fresh));
    cells.push_back(percent_text(fresh.samples > 0 ? fresh.share_ok() : std::nan("")));
    table.push_back({std::move(cells), std::nullopt});
  }
  if (table.empty()) return {};
  return section(
      "What the policy wrote",
      {paragraph("Shares of the samples by their programs: a copy of a variant that the prompt "
                 "shows, a document of the corpus, the reference, a program written before, or a "
                 "new one. The remaining samples are no program."),
       plots::wide_table({"stage", "samples", "copies", "corpus", "reference", "written before",
                          "new", "new ones that are ok"},
                         table)});
}

namespace {

// Returns the results of the last policy for each held-out task.
element held_out_tasks(const ordered_json& last) {
  std::vector<plots::table_row> table;
  for (const auto& row : last["tasks"]) {
    const bool is_ok = row["ok"] > 0;
    table.push_back(
        {{row["task"], count_text(row["samples"].get<std::uint64_t>()), percent_text(row["ok"]),
          is_ok ? ratio_of_log(row["log_speedup_of_best"]) : "-"},
         std::nullopt});
  }
  return folded("By task, " + last["name"].get<std::string>(),
                {plots::wide_table({"task", "samples", "ok", "best"}, table)});
}

}  // namespace

element held_out(const run_view& run) {
  if (!run.numbers.contains("held_out")) return {};
  std::vector<plots::table_row> table;
  for (const auto& row : run.numbers["held_out"]) {
    const auto& sampled = row["sampled"];
    table.push_back({{row["name"], number_text(row["tokens"].get<double>() / 1e6) + " M",
                      percent_text(sampled["ok"]), percent_text(sampled["solved"]),
                      sampled["ok"] > 0 ? ratio_of_log(sampled["log_speedup_of_ok"]) : "-",
                      sampled["ok"] > 0 ? ratio_of_log(sampled["log_speedup_of_best"]) : "-",
                      row["greedy"].is_null() ? "-" : percent_text(row["greedy"]["ok"])},
                     std::nullopt});
  }
  return section(
      "Held-out tasks",
      {paragraph("Tasks that the run learns nothing from, judged afresh. Speed-ups are geometric "
                 "means of the ok samples, and of the best sample of each task."),
       plots::wide_table(
           {"policy", "tokens trained on", "ok", "tasks solved", "speed-up", "best", "greedy ok"},
           table),
       held_out_tasks(run.numbers["held_out"].back())});
}

element compared(const run_view& run) {
  if (!run.numbers.contains("comparison")) return {};
  const auto& comparison = run.numbers["comparison"];
  std::vector<plots::table_row> table;
  for (const auto& row : comparison["tasks"]) {
    const auto speedup = [](const ordered_json& policy) {
      return policy["ok"] > 0 ? ratio_of_log(policy["log_speedup_of_ok"]) : std::string("-");
    };
    table.push_back(
        {{row["task"], percent_text(row["before"]["ok"]), percent_text(row["after"]["ok"]),
          ratio_of_log(row["before"]["log_speedup"]), ratio_of_log(row["after"]["log_speedup"]),
          speedup(row["before"]), speedup(row["after"])},
         std::nullopt});
  }
  return section(
      "Before and after the contrastive stage",
      {paragraph("Both policies answered the same prompts, and their samples were judged afresh. " +
                 comparison_sentence(comparison) + ". Of the samples, " +
                 percent_text(comparison["before"]["copies"]) + " before and " +
                 percent_text(comparison["after"]["copies"]) +
                 " after are copies of variants that their prompts show."),
       paragraph(
           "The mean counts a sample that is not ok as 0.25x; the last two columns leave such "
           "samples out."),
       plots::wide_table({"task", "ok before", "ok after", "mean before", "mean after",
                          "ok samples before", "ok samples after"},
                         table)});
}

}  // namespace hone::parts
