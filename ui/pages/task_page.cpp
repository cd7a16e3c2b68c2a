#include <algorithm>
#include <map>

#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "tasks/task_file.hpp"
#include "ui/code/highlight.hpp"
#include "ui/html/numbers.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/plots/speedup_plots.hpp"

namespace hone {
namespace {

using html::element;

constexpr std::size_t rows_per_page = 50;
constexpr std::size_t max_reference_lines = 200;

plots::variant_origin mark_of(const catalogue::row& row) {
  if (row.from == catalogue::origin::corpus) return plots::variant_origin::corpus;
  return row.is_copy ? plots::variant_origin::copied : plots::variant_origin::generated;
}

std::string name_of_origin(const catalogue::row& row) {
  switch (row.from) {
    case catalogue::origin::corpus:
      return "corpus";
    case catalogue::origin::client:
      return "client";
    case catalogue::origin::comparison:
      return "comparison";
    default:
      return row.is_copy ? "copy" : "policy";
  }
}

// The rows of a place that a request's filters leave.
std::vector<const catalogue::row*> chosen_rows(const catalogue& all, std::uint32_t place,
                                               const page_request& request) {
  const std::string outcome = request.outcome();
  const std::string version = request.value("version");
  std::vector<const catalogue::row*> rows;
  for (const catalogue::row& row : all.rows_of(place)) {
    if (!outcome.empty() && name_of(row.outcome) != outcome) continue;
    if (!version.empty() && std::to_string(row.version) != version) continue;
    rows.push_back(&row);
  }
  return rows;
}

std::vector<plots::variant_point> points_of(const std::vector<const catalogue::row*>& rows) {
  std::vector<plots::variant_point> points;
  for (const catalogue::row* row : rows)
    points.push_back({static_cast<double>(row->version), row->speedup,
                      static_cast<std::size_t>(row->outcome), mark_of(*row), short_id(row->variant),
                      parts::variant_link(row->variant)});
  return points;
}

element rows_table(const catalogue& all, std::vector<const catalogue::row*> rows,
                   const page_request& request) {
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->deciding != b->deciding ? a->deciding > b->deciding : a->outcome < b->outcome;
  });
  const std::size_t from = request.first_row(rows.size(), rows_per_page);
  std::vector<plots::table_row> table;
  for (std::size_t i = from; i < std::min(rows.size(), from + rows_per_page); ++i) {
    const catalogue::row& row = *rows[i];
    const headline score{row.speedup, row.measurements, row.lowest, row.highest, 0, 0};
    table.push_back({{short_id(row.variant), std::string(name_of(row.outcome)), name_of_origin(row),
                      all.failures[row.failure], row.speedup > 0 ? speedup_text(row.speedup) : "-",
                      row.is_screened   ? "screened"
                      : row.speedup > 0 ? range_text(score)
                                        : "-",
                      std::to_string(row.version)},
                     parts::variant_link(row.variant)});
  }
  element made;
  made.add(plots::wide_table(
      {"variant", "outcome", "origin", "message", "speed-up", "measured", "version"}, table, 4));
  made.add(page_links(request, "/task", {from, rows_per_page, rows.size()}, "variants"));
  return made;
}

element outcome_choices(const catalogue& all, std::uint32_t place, const page_request& request) {
  const auto rows = all.rows_of(place);
  std::map<Outcome, std::uint64_t> counts;
  for (const catalogue::row& row : rows) ++counts[row.outcome];
  std::vector<choice> outcomes = {{"", "all (" + count_text(rows.size()) + ")"}};
  for (const auto& [outcome, count] : counts) outcomes.push_back(counted_choice(outcome, count));
  return choices("Outcome", request, "/task", "outcome", request.value("outcome"), outcomes);
}

element device_choices(const catalogue& all, std::uint32_t chosen, const page_request& request) {
  std::vector<choice> types;
  for (const auto& place : all.places) {
    if (place.task == all.places[chosen].task)
      types.push_back({place.device_type, place.device_type});
  }
  return choices("Device type", request, "/task", "on", all.places[chosen].device_type, types);
}

}  // namespace

page task_page(const snapshot& of, const page_request& request) {
  if (request.segments.size() != 1) throw not_found("a task's page is /task/NAME");
  const catalogue& all = of.rows;
  const std::uint32_t place = place_named(all, request.segments[0], request.value("on"));
  const auto rows = chosen_rows(all, place, request);
  element body;
  body.add(device_choices(all, place, request));
  body.add(outcome_choices(all, place, request));
  body.add(plots::figure(
      plots::variant_scatter("Variants of " + all.places[place].name, points_of(rows)),
      "Speed-up by the version of the policy that wrote the variant first. The line is the best so "
      "far; failures are in the lanes below."));
  body.add(parts::section("Variants", {rows_table(all, rows, request)}));
  const auto reference = reference_of(of.pool, all.places[place].task);
  body.add(parts::section(
      "Reference", {highlighted_code(view(reference->getPython()),
                                     {code_language::python, "r", max_reference_lines, {}})}));
  return {all.places[place].name, std::move(body)};
}

}  // namespace hone
