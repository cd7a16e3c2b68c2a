#include "ui/report/html_report.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <nlohmann/json.hpp>

#include "embedded/ui_style.hpp"
#include "messages/measurements.hpp"
#include "results/comparison.hpp"
#include "results/printing.hpp"
#include "results/report.hpp"
#include "results/variants.hpp"
#include "ui/code/diff.hpp"
#include "ui/html/numbers.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/parts/variant_parts.hpp"
#include "ui/plots/plot.hpp"

namespace hone {
namespace {

using namespace parts;
using html::element;
using nlohmann::ordered_json;

constexpr std::size_t max_best_shown = 3;    // variants with code
constexpr std::size_t max_failures = 10;     // rows
constexpr std::size_t max_task_rows = 400;   // of the table
constexpr std::size_t max_code_lines = 300;  // of one block

// A run with everything that the sections read.
struct loaded_run {
  const reported_run& of;
  pool_inspector pool;
  run_results results;
  ordered_json numbers;
  std::vector<learning_point> curve;

  explicit loaded_run(const reported_run& run)
      : of(run),
        pool(run.pool),
        results(read_results(pool)),
        numbers(make_report(results).json),
        curve(learning_curve(results)) {}
};

std::string digest_of(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), hash.data(), &size, EVP_sha256(), nullptr);
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> encoded{};
  const int length = EVP_EncodeBlock(encoded.data(), hash.data(), static_cast<int>(size));
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<std::size_t>(length)};
}

element best_variant(const run_view& run, const place& where, const task_row& row,
                     const std::string& prefix) {
  const schema::Evaluation::Reader e = *row.best;
  const variant_id id(e.getVariantId());
  const auto v = run.pool.variant(id);
  element made("article", {}, {});
  made.add(
      {"h3",
       {},
       {html::isolated(run.results.name_of(where)),
        html::text(": " + speedup_text(headline_of(e).speedup) + ", variant " + short_id(id))}});
  const ancestry from = ancestry_of(run.pool, id);
  if (!from.sentence.empty()) made.add(paragraph(from.sentence));
  if (!from.prose.empty())
    made.add(folded("Analysis and design as the policy wrote them",
                    {element("pre", {{"class", "prose"}}, {html::text(from.prose)})}));
  if (v) {
    made.add(code_of(**v, prefix, max_code_lines));
    const auto reference = reference_of(run.pool, where.task);
    const schema::Variant::Reader parent = from.parent ? **from.parent : *reference;
    const std::string name = from.parent ? "the fastest exemplar shown, " +
                                               short_id(variant_id(parent.getId())) + ", " +
                                               speedup_text(from.parent_speedup)
                                         : std::string("the reference");
    made.add(folded("Differences from " + name,
                    {unified_diff(blocks_of(parent), blocks_of(**v), {3, max_code_lines})}));
  }
  made.add(measurements_of(e));
  return made;
}

// Prefers programs that are new: those of the corpus were there before the run.
element best_variants(const run_view& run, const std::string& prefix) {
  auto chosen = tasks_by_gain(run.results);
  std::stable_partition(chosen.begin(), chosen.end(),
                        [](const auto& task) { return origin_of(*task.second) == "new"; });
  chosen.resize(std::min(chosen.size(), max_best_shown));
  std::vector<element> parts;
  if (chosen.empty()) parts.push_back(paragraph("No variant has a score."));
  for (std::size_t i = 0; i < chosen.size(); ++i)
    parts.push_back(
        best_variant(run, chosen[i].first, *chosen[i].second, prefix + std::to_string(i)));
  return section("Best variants", std::move(parts));
}

element activity(const std::string& finished_report) {
  const auto finished = ordered_json::parse(finished_report, nullptr, false);
  if (finished.is_discarded() || !finished.contains("busy")) return {};
  std::vector<plots::table_row> table;
  for (const auto& [room, share] : finished["busy"].items())
    table.push_back({{room, percent_text(share)}, std::nullopt});
  return section("Time",
                 {paragraph("Mean share of the time in which the actors of each kind were busy."),
                  plots::wide_table({"actors", "busy"}, table)});
}

element origin(const run_view& run, const std::string& configuration, const std::string& made_by) {
  std::vector<plots::table_row> facts = {
      {{"program", made_by}, std::nullopt},
      {{"judge version", std::to_string(run.pool.judge_version())}, std::nullopt},
      {{"samples", count_text(run.results.samples)}, std::nullopt},
      {{"programs judged", count_text(run.results.judged)}, std::nullopt},
      {{"measurements", count_text(run.results.measurements)}, std::nullopt}};
  for (const std::string& type : run.results.device_types)
    facts.push_back({{"device type", type}, std::nullopt});
  std::vector<element> content = {plots::wide_table({"fact", "value"}, facts, 2)};
  if (!configuration.empty())
    content.push_back(folded("Configuration",
                             {element("pre", {{"class", "prose"}}, {html::text(configuration)})}));
  return section("How this was made", std::move(content));
}

// One row per run, to compare them.
element comparison_of_runs(const std::vector<run_view>& runs) {
  std::vector<plots::table_row> table;
  for (const run_view& run : runs) {
    double logs = 0;
    std::size_t solved = 0;
    for (const auto& [where, row] : run.results.tasks) {
      if (!row.best) continue;
      ++solved;
      logs += std::log(std::max(min_speedup, headline_of(*row.best).speedup));
    }
    const bool has_comparison = run.numbers.contains("comparison");
    const auto ratio = [&](const char* side) {
      return has_comparison
                 ? ratio_of_log(run.numbers["comparison"][side]["log_speedup"].get<double>())
                 : std::string("-");
    };
    table.push_back({{run.name, count_text(run.results.samples), count_text(run.results.judged),
                      count_text(solved) + " of " + count_text(run.results.tasks.size()),
                      solved > 0 ? ratio_of_log(logs / static_cast<double>(solved)) : "-",
                      ratio("before"), ratio("after")},
                     std::nullopt});
  }
  return section("Runs", {plots::wide_table({"run", "samples", "judged", "tasks solved",
                                             "best, mean", "policy before", "policy after"},
                                            table)});
}

}  // namespace

std::string html_report(const std::vector<reported_run>& runs, const std::string& made_by) {
  std::list<loaded_run> loaded;  // a pool cannot be moved
  for (const reported_run& run : runs) loaded.emplace_back(run);
  std::vector<run_view> views;
  for (const loaded_run& run : loaded)
    views.push_back({run.of.name, run.pool, run.results, run.numbers, run.curve});
  const std::string title =
      runs.size() == 1 ? "Hone: " + runs.front().name : "Hone: " + counted(runs.size(), "run");
  element content("main", {}, {});
  if (views.size() > 1) {
    content.add(comparison_of_runs(views));
    content.add(learning(views));
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    const run_view& run = views[i];
    if (views.size() > 1) content.add({"h2", {{"class", "run"}}, {html::isolated(run.name)}});
    content.add(summary(run, runs[i].state));
    if (views.size() == 1) content.add(learning(views));
    content.add(outcomes(run));
    content.add(speedups(run, max_task_rows));
    content.add(compared(run));
    content.add(held_out(run));
    content.add(best_variants(run, "r" + std::to_string(i) + "v"));
    content.add(failures(run, max_failures));
    content.add(activity(runs[i].finished_report));
    content.add(origin(run, runs[i].configuration, made_by));
  }
  return html::page(
      {title, std::string(embedded::ui_style),
       "default-src 'none'; style-src 'sha256-" + digest_of(embedded::ui_style) + "'"},
      {element("header", {}, {element("h1", {}, {html::text(title)})}), std::move(content)});
}

}  // namespace hone
