#include <algorithm>
#include <functional>
#include <set>

#include "messages/measurements.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "ui/html/numbers.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/plots/plot.hpp"
#include "ui/plots/run_plots.hpp"

namespace hone {
namespace {

using html::element;

constexpr std::size_t rows_per_page = 200;

struct task_line {
  const catalogue::task_on_device* place = nullptr;
  const task_row* row = nullptr;
  headline best;
  std::vector<double> best_so_far;  // speed-ups of the variants that were the fastest so far
};

std::vector<task_line> lines_of(const snapshot& of, const std::string& on) {
  std::vector<task_line> lines;
  const catalogue& all = of.rows;
  for (std::uint32_t i = 0; i < all.places.size(); ++i) {
    const auto& where = all.places[i];
    if (!on.empty() && where.device_type != on) continue;
    const auto found = of.results.tasks.find({where.task, where.device_type});
    if (found == of.results.tasks.end()) continue;
    task_line line{&where, &found->second, {}, {}};
    if (found->second.best) line.best = headline_of(*found->second.best);
    for (const catalogue::row& tried : all.rows_of(i)) {
      if (tried.speedup > (line.best_so_far.empty() ? 0 : line.best_so_far.back()))
        line.best_so_far.push_back(tried.speedup);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

double share_ok(const task_row& row) {
  return row.tried > 0 ? static_cast<double>(row.ok) / static_cast<double>(row.tried) : 0;
}

void sort_lines(std::vector<task_line>& lines, const std::string& by) {
  const std::map<std::string, std::function<double(const task_line&)>> keys = {
      {"gain", [](const task_line& l) { return -l.best.speedup; }},
      {"tried", [](const task_line& l) { return -static_cast<double>(l.row->tried); }},
      {"ok", [](const task_line& l) { return -share_ok(*l.row); }}};
  const auto key = keys.find(by);
  if (by == "name") return;  // the catalogue's order
  if (key == keys.end()) throw not_found("tasks are not sorted by '" + by + "'");
  std::stable_sort(lines.begin(), lines.end(), [&](const task_line& a, const task_line& b) {
    return key->second(a) < key->second(b);
  });
}

element cell(std::string_view content) { return {"td", {}, {html::text(content)}}; }
element number_cell(std::string_view content) {
  return {"td", {{"class", "n"}}, {html::text(content)}};
}

element line_element(const snapshot& of, const task_line& line) {
  const auto& where = *line.place;
  element row("tr", {}, {});
  row.add(
      {"td",
       {},
       {element("a", {html::href(parts::task_link(of.results, {where.task, where.device_type}))},
                {html::text(where.name)})}});
  row.add(cell(where.device_type));
  const bool has_best = static_cast<bool>(line.row->best);
  const auto shown =
      has_best ? measurement_of_score(*line.row->best) : schema::Measurement::Reader();
  row.add(number_cell(has_best ? duration_text(reference_us(shown)) : "-"));
  row.add(number_cell(has_best ? duration_text(candidate_us(shown)) : "-"));
  row.add(number_cell(has_best ? speedup_text(line.best.speedup) : "-"));
  row.add(number_cell(has_best ? range_text(line.best) : "-"));
  std::string over;
  if (has_best) {
    for (const auto& [name, ratio] : speedups_over_baselines(*line.row->best)) {
      if (name != "eager") over += (over.empty() ? "" : ", ") + name + " " + speedup_text(ratio);
    }
  }
  row.add(cell(over.empty() ? "-" : over));
  row.add(number_cell(count_text(line.row->tried)));
  row.add(number_cell(count_text(line.row->ok) + " (" + percent_text(share_ok(*line.row)) + ")"));
  row.add({"td", {}, {plots::sparkline("Best so far", line.best_so_far)}});
  std::string marks = has_best           ? parts::origin_of(*line.row)
                      : line.row->ok > 0 ? "not timed"
                                         : "none ok";
  if (where.is_held_out) marks += ", held out";
  row.add(cell(marks));
  if (has_best) {
    const variant_id id(line.row->best->getVariantId());
    row.add({"td",
             {},
             {element("a", {html::href(parts::variant_link(id))}, {html::text(short_id(id))})}});
  } else {
    row.add(cell("-"));
  }
  return row;
}

}  // namespace

page tasks_page(const snapshot& of, const page_request& request) {
  std::vector<task_line> lines = lines_of(of, request.value("on"));
  const std::string sort = request.value("sort").empty() ? "gain" : request.value("sort");
  sort_lines(lines, sort);
  const std::size_t from = request.first_row(lines.size(), rows_per_page);
  element body;
  if (of.results.device_types.size() > 1) {
    std::vector<choice> types = {{"", "all"}};
    for (const std::string& type : of.results.device_types) types.push_back({type, type});
    body.add(choices("Device type", request, "/tasks", "on", request.value("on"), types));
  }
  body.add(choices("Sorted by", request, "/tasks", "sort", sort,
                   {{"gain", "gain"}, {"name", "name"}, {"tried", "tried"}, {"ok", "ok"}}));
  element head("tr", {}, {});
  for (const char* title : {"task", "device type", "reference", "best", "speed-up", "measured",
                            "over baselines", "tried", "ok", "best over time", "origin", "variant"})
    head.add({"th", {{"scope", "col"}}, {html::text(title)}});
  element content("tbody", {}, {});
  for (std::size_t i = from; i < std::min(lines.size(), from + rows_per_page); ++i)
    content.add(line_element(of, lines[i]));
  body.add(plots::scrollable(
      element("table", {}, {element("thead", {}, {std::move(head)}), std::move(content)}),
      "Tasks"));
  body.add(page_links(request, "/tasks", {from, rows_per_page, lines.size()}, "tasks"));
  body.add({"p",
            {{"class", "note"}},
            {html::text("Tried: documents of the corpus and variants of the policy, without those "
                        "that are no program. Best over time: by a variant's median; which variant "
                        "is the best, its measurements after the first decide.")}});
  if (lines.empty()) body.add(parts::paragraph("No variant was judged yet."));
  return {"Tasks", std::move(body)};
}

}  // namespace hone
