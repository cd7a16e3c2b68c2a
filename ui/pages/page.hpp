#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ui/html/element.hpp"
#include "ui/server/snapshot.hpp"

namespace hone {

// A request for a page or for its data: "/task/softmax?on=h100" has the name "task", the segment
// "softmax" and the query "on".
struct page_request {
  std::string name;
  std::vector<std::string> segments;
  std::map<std::string, std::string> query;

  // Returns a value of the query, or nothing.
  std::string value(const std::string& key) const {
    const auto found = query.find(key);
    return found == query.end() ? "" : found->second;
  }
  // Returns a number of the query, from 0 to `most`; `otherwise` if it has none.
  std::size_t number(const std::string& key, std::size_t otherwise, std::size_t most) const;
  // Returns the first row of the page that `from` names, of `count` rows.
  std::size_t first_row(std::size_t count, std::size_t per_page) const;
  // Returns the name of an outcome that the query has, or nothing. Throws not_found for others.
  std::string outcome() const;
  // Returns this request's address with one value of the query replaced; an empty one is left out.
  // Other values are kept if they are not empty, except `from`, the first row of a page.
  html::url with(html::url_prefix path, const std::string& key, const std::string& value) const;
};

// The request names nothing that the run has.
class not_found : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct page {
  std::string title;
  html::element body;
};

// One of the values that a query may have, with its name.
struct choice {
  std::string value;
  std::string shown;
};
// Returns "compile_error (12)".
choice counted_choice(Outcome outcome, std::uint64_t count);
// Returns a line with links to the other values of `key`, which is now `chosen`.
html::element choices(std::string_view title, const page_request& request, html::url_prefix path,
                      const std::string& key, const std::string& chosen,
                      const std::vector<choice>& all);
// The rows that a page shows, of `count`.
struct shown_rows {
  std::size_t from = 0;
  std::size_t per_page = 0;
  std::size_t count = 0;
};
// Returns links to the rows before and after, as far as there are any.
html::element page_links(const page_request& request, html::url_prefix path, const shown_rows& rows,
                         std::string_view what);

// Make a page, or its data as JSON. All throw not_found and pool_error. Each page shows numbers of
// run_results, of the catalogue, or of records, and computes none that the commands do not.
page run_page(const snapshot& of, const page_request& request, std::string_view state);
page tasks_page(const snapshot& of, const page_request& request);
page task_page(const snapshot& of, const page_request& request);
page variant_page(const snapshot& of, const page_request& request);
page group_page(const snapshot& of, const page_request& request);
page diff_page(const snapshot& of, const page_request& request);
page failures_page(const snapshot& of, const page_request& request);
// Lists what a text may mean: tasks whose names contain it, a variant, a group. Of a single one,
// returns its address in `target`.
page find_page(const snapshot& of, const std::string& text, std::string& target);
page cluster_page(const std::filesystem::path& run, const page_request& request);

nlohmann::ordered_json api_answer(const snapshot& of, const page_request& request,
                                  std::string_view state);

// Returns the index of the place that a request names by task, its name or its id, and `on`, the
// device type; without `on`, the first of the task. Throws not_found.
std::uint32_t place_named(const catalogue& rows, const std::string& task, const std::string& on);
// Returns the variant whose id begins so. Throws not_found.
record<schema::Variant> variant_named(const pool_inspector& pool, const std::string& prefix);
// Returns the group whose id begins so. Throws not_found.
record<schema::RolloutGroup> group_named(const pool_inspector& pool, const std::string& prefix);

}  // namespace hone
