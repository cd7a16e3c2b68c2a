#include "ui/code/diff.hpp"

#include <algorithm>
#include <array>
#include <dtl/dtl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "ui/code/highlight.hpp"
#include "ui/html/characters.hpp"
#include "ui/html/numbers.hpp"

namespace hone {
namespace {

using html::element;
using lines = std::vector<std::string_view>;

constexpr std::size_t max_product = 1'000'000;

// Classes of the columns.
constexpr std::array split_columns = {"number", "half", "number", "half"};
constexpr std::array unified_columns = {"number", "number", "sign", "whole"};

// A row of a table: a line of one text or of both, or equal lines that are not shown.
struct diff_row {
  std::optional<std::size_t> before;  // indices
  std::optional<std::size_t> after;
  std::size_t skipped = 0;
};

// Moves the removed lines of each change before its added ones.
void sort_changes(std::vector<change_kind>& kinds) {
  for (auto begin = kinds.begin(); begin != kinds.end();) {
    const auto end = std::find(begin, kinds.end(), change_kind::equal);
    std::stable_partition(begin, end, [](change_kind k) { return k == change_kind::removed; });
    begin = std::find_if(end, kinds.end(), [](change_kind k) { return k != change_kind::equal; });
  }
}

// Returns the rows of a table. Side by side, the n-th removed line of a change is in the row of its
// n-th added one.
std::vector<diff_row> rows_of(const std::vector<line_change>& changes, std::size_t context,
                              bool is_side_by_side) {
  std::vector<diff_row> rows;
  for (std::size_t i = 0; i < changes.size();) {
    std::size_t end = i;
    while (end < changes.size() &&
           (changes[end].kind == change_kind::equal) == (changes[i].kind == change_kind::equal)) {
      ++end;
    }
    if (changes[i].kind == change_kind::equal) {
      const std::size_t head = i == 0 ? 0 : std::min(context, end - i);
      const std::size_t tail = end == changes.size() ? 0 : std::min(context, end - i - head);
      for (std::size_t k = i; k < end; ++k) {
        if (k == i + head && k + tail + 1 < end) {
          rows.push_back({{}, {}, end - tail - k});
          k = end - tail;
          if (k == end) break;
        }
        rows.push_back({changes[k].before, changes[k].after, 0});
      }
    } else {
      const std::size_t first_added = rows.size();
      std::size_t added = 0;
      for (std::size_t k = i; k < end; ++k) {
        if (changes[k].kind == change_kind::removed) {
          rows.push_back({changes[k].before, {}, 0});
        } else if (is_side_by_side && first_added + added < rows.size()) {
          rows[first_added + added++].after = changes[k].after;
        } else {
          rows.push_back({{}, changes[k].after, 0});
          ++added;
        }
      }
    }
    i = end;
  }
  return rows;
}

// Returns the cell of a line. Marks all but the first `prefix` and the last `suffix` bytes.
element line_cell(std::string_view line, std::string css_class, std::size_t prefix,
                  std::size_t suffix) {
  const shown_line shown = shown_part(line);
  const std::size_t end = std::min(line.size() - suffix, shown.text.size());
  element cell("td", {{"class", std::move(css_class)}});
  if (prefix >= end) {
    cell.add(html::text(shown.text));
  } else {
    cell.add(html::text(shown.text.substr(0, prefix)));
    cell.add(element("mark", {}, {html::text(shown.text.substr(prefix, end - prefix))}));
    cell.add(html::text(shown.text.substr(end)));
  }
  if (shown.hidden_bytes > 0) cell.add(hidden_note(shown.hidden_bytes));
  return cell;
}

element number_cell(const std::optional<std::size_t>& index) {
  return element("td", {{"class", "number"}}, {html::text(index ? count_text(*index + 1) : "")});
}

// Returns the numbers of equal bytes at the beginning and the end of two lines, or npos and 0 if
// less than a third is equal. Cuts no character.
std::pair<std::size_t, std::size_t> equal_ends(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  std::size_t prefix = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin()).first -
      a.begin());
  while (prefix > 0 && ((prefix < a.size() && continues(a[prefix])) ||
                        (prefix < b.size() && continues(b[prefix])))) {
    --prefix;
  }
  std::size_t suffix = 0;
  while (prefix + suffix < shorter && a[a.size() - 1 - suffix] == b[b.size() - 1 - suffix]) {
    ++suffix;
  }
  while (suffix > 0 && continues(a[a.size() - suffix])) --suffix;
  if (3 * (prefix + suffix) < std::max(a.size(), b.size())) return {std::string_view::npos, 0};
  return {prefix, suffix};
}

void add_unified(element& row, const lines& before, const lines& after, const diff_row& r) {
  const bool is_added = !r.before;
  const bool is_equal = r.before && r.after;
  const std::string_view line = is_added ? after[*r.after] : before[*r.before];
  row.add(number_cell(r.before));
  row.add(number_cell(r.after));
  row.add(element("td", {{"class", "sign"}}, {html::text(is_equal ? "" : is_added ? "+" : "-")}));
  row.add(line_cell(line, is_equal ? "" : is_added ? "added" : "removed", line.size(), 0));
}

void add_side_by_side(element& row, const lines& before, const lines& after, const diff_row& r,
                      bool is_equal) {
  std::size_t prefix = std::string_view::npos;
  std::size_t suffix = 0;
  if (r.before && r.after && !is_equal) {
    std::tie(prefix, suffix) = equal_ends(before[*r.before], after[*r.after]);
  }
  row.add(number_cell(r.before));
  row.add(r.before ? line_cell(before[*r.before], is_equal ? "" : "removed", prefix, suffix)
                   : element("td", {{"class", "none"}}));
  row.add(number_cell(r.after));
  row.add(r.after ? line_cell(after[*r.after], is_equal ? "" : "added", prefix, suffix)
                  : element("td", {{"class", "none"}}));
}

element diff_table(std::string_view before_text, std::string_view after_text,
                   const diff_options& options, bool is_side_by_side) {
  const lines before = lines_of_code(before_text);
  const lines after = lines_of_code(after_text);
  const std::vector<diff_row> rows =
      rows_of(line_changes(before, after), options.context_lines, is_side_by_side);
  const auto note = [&](const std::string& words) {
    return element("tr", {{"class", "skipped"}},
                   {element("td", {{"colspan", "4"}}, {html::text(words)})});
  };
  element body("tbody");
  std::size_t shown = 0;
  for (std::size_t bytes = 0; shown < std::min(rows.size(), options.max_rows); ++shown) {
    if (bytes > options.max_bytes) break;
    const diff_row& r = rows[shown];
    if (r.skipped > 0) {
      body.add(note(count_text(r.skipped) + " equal lines"));
      continue;
    }
    element row("tr");
    if (is_side_by_side) {
      add_side_by_side(row, before, after, r,
                       r.before && r.after && before[*r.before] == after[*r.after]);
    } else {
      add_unified(row, before, after, r);
    }
    bytes += row.str().size();
    body.add(std::move(row));
  }
  if (rows.size() > shown) body.add(note(count_text(rows.size() - shown) + " more rows"));
  element columns("colgroup");
  for (const char* width : is_side_by_side ? split_columns : unified_columns) {
    columns.add(element("col", {{"class", width}}));
  }
  return element("table", {{"class", is_side_by_side ? "diff split" : "diff unified"}},
                 {std::move(columns), std::move(body)});
}

}  // namespace

std::vector<line_change> line_changes(const lines& before, const lines& after) {
  const std::size_t shorter = std::min(before.size(), after.size());
  std::size_t prefix = 0;
  while (prefix < shorter && before[prefix] == after[prefix]) ++prefix;
  std::size_t suffix = 0;
  while (prefix + suffix < shorter &&
         before[before.size() - 1 - suffix] == after[after.size() - 1 - suffix]) {
    ++suffix;
  }

  std::vector<change_kind> kinds(prefix, change_kind::equal);
  const lines removed(before.begin() + static_cast<std::ptrdiff_t>(prefix),
                      before.end() - static_cast<std::ptrdiff_t>(suffix));
  const lines added(after.begin() + static_cast<std::ptrdiff_t>(prefix),
                    after.end() - static_cast<std::ptrdiff_t>(suffix));
  if ((removed.size() + 1) * (added.size() + 1) <= max_product) {
    // Numbers for lines make their comparisons cheap.
    std::unordered_map<std::string_view, int> numbers;
    const auto numbered = [&](const lines& all) {
      std::vector<int> result;
      for (const std::string_view line : all) {
        const int next = static_cast<int>(numbers.size());
        result.push_back(numbers.try_emplace(line, next).first->second);
      }
      return result;
    };
    dtl::Diff<int> difference(numbered(removed), numbered(added));
    difference.compose();
    for (const auto& [line, info] : difference.getSes().getSequence()) {
      kinds.push_back(info.type == dtl::SES_DELETE ? change_kind::removed
                      : info.type == dtl::SES_ADD  ? change_kind::added
                                                   : change_kind::equal);
    }
    sort_changes(kinds);
  } else {
    kinds.insert(kinds.end(), removed.size(), change_kind::removed);
    kinds.insert(kinds.end(), added.size(), change_kind::added);
  }
  kinds.insert(kinds.end(), suffix, change_kind::equal);

  std::vector<line_change> changes;
  changes.reserve(kinds.size());
  std::size_t b = 0;
  std::size_t a = 0;
  for (const change_kind kind : kinds) {
    changes.push_back({kind, b, a});
    if (kind != change_kind::added) ++b;
    if (kind != change_kind::removed) ++a;
  }
  return changes;
}

element unified_diff(std::string_view before, std::string_view after, const diff_options& options) {
  return diff_table(before, after, options, false);
}

element side_by_side_diff(std::string_view before, std::string_view after,
                          const diff_options& options) {
  return diff_table(before, after, options, true);
}

}  // namespace hone
