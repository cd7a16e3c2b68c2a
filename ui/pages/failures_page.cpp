#include <algorithm>
#include <map>

#include "messages/names.hpp"
#include "results/variants.hpp"
#include "ui/html/numbers.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/plots/plot.hpp"

namespace hone {
namespace {

using html::element;

constexpr std::size_t max_rows = 200;

struct failed {
  std::uint64_t count = 0;
  std::uint64_t closed_ms = 0;  // of the newest
  variant_id newest;
  std::string task;
};

}  // namespace

page failures_page(const snapshot& of, const page_request& request) {
  const std::string outcome = request.outcome();
  std::map<std::pair<Outcome, std::uint32_t>, failed> reasons;
  std::map<Outcome, std::uint64_t> by_outcome;
  std::uint64_t all = 0;
  for (const catalogue::row& row : of.rows.rows) {
    if (row.outcome == Outcome::OK) continue;
    ++by_outcome[row.outcome];
    if (!outcome.empty() && name_of(row.outcome) != outcome) continue;
    ++all;
    failed& reason = reasons[{row.outcome, row.failure}];
    ++reason.count;
    if (row.closed_ms < reason.closed_ms) continue;
    reason.closed_ms = row.closed_ms;
    reason.newest = row.variant;
    reason.task = of.rows.places[row.place].name;
  }
  std::vector<std::pair<std::pair<Outcome, std::uint32_t>, failed>> sorted(reasons.begin(),
                                                                           reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  element body;
  std::vector<choice> outcomes = {{"", "all"}};
  for (const auto& [failure, count] : by_outcome)
    outcomes.push_back(counted_choice(failure, count));
  body.add(choices("Outcome", request, "/failures", "outcome", outcome, outcomes));
  std::vector<plots::table_row> rows;
  for (std::size_t i = 0; i < std::min(sorted.size(), max_rows); ++i) {
    const auto& [reason, found] = sorted[i];
    rows.push_back({{short_id(found.newest), found.task, std::string(name_of(reason.first)),
                     of.rows.failures[reason.second], count_text(found.count),
                     percent_text(static_cast<double>(found.count) / static_cast<double>(all))},
                    parts::variant_link(found.newest)});
  }
  body.add(plots::wide_table(
      {"newest example", "task", "outcome", "message", "evaluations", "share"}, rows, 4));
  if (sorted.size() > max_rows)
    body.add(parts::paragraph("The first " + count_text(max_rows) + " of " +
                              count_text(sorted.size()) + " reasons."));
  body.add({"p",
            {{"class", "note"}},
            {html::text("Numbers and names in messages are left out, so that messages of one cause "
                        "are counted together. Each variant is evaluated once, however often it is "
                        "written; documents of the corpus are included.")}});
  body.add(parts::outcomes({"this run", of.pool, of.results, of.numbers, of.curve, true}));
  return {"Failures", std::move(body)};
}

}  // namespace hone
