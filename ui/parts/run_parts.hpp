#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/learning_curve.hpp"
#include "results/run_results.hpp"
#include "storage/inspection.hpp"
#include "ui/html/element.hpp"

// Parts of pages about a run, which the report has as well. All are pure functions of what they are
// given, and throw pool_error if they read a pool that cannot be read.
namespace hone::parts {

// A run as the parts see it.
struct run_view {
  std::string name;
  const pool_inspector& pool;
  const run_results& results;
  const nlohmann::ordered_json& numbers;  // of make_report()
  const std::vector<learning_point>& curve;
  bool has_links = false;  // to the pages of the server
};

html::element paragraph(std::string_view content);
html::element section(std::string_view title, std::vector<html::element> content);
// Returns a <details> with a summary.
html::element folded(std::string_view title, std::vector<html::element> content);

// Returns a text of a stranger in lines as they are: its beginning, if it takes more than
// `max_bytes` of HTML, with a note.
html::element prose(std::string_view content, std::size_t max_bytes = 128U << 10U);

std::string ratio_of_log(double log);

html::url task_link(const run_results& results, const place& where);
html::url variant_link(const variant_id& id);

// The tasks with a best variant, the largest speed-up first.
std::vector<std::pair<place, const task_row*>> tasks_by_gain(const run_results& results);
// Returns "corpus", "reference" or "new".
std::string origin_of(const task_row& row);

html::element summary(const run_view& run, std::string_view state);
// The learning curves of one run or of several.
html::element learning(const std::vector<run_view>& runs);
html::element outcomes(const run_view& run);
// Speed-ups by task as a plot and a table of `max_rows` at most.
html::element speedups(const run_view& run, std::size_t max_rows);
html::element failures(const run_view& run, std::size_t max_rows);
// Empty for a run without such results.
html::element compared(const run_view& run);
html::element sources(const run_view& run);
html::element held_out(const run_view& run);

}  // namespace hone::parts
