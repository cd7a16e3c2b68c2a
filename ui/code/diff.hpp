#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "ui/html/element.hpp"

namespace hone {

enum class change_kind { equal, removed, added };

struct line_change {
  change_kind kind;
  std::size_t before;  // index of the line in the text before; for an added line, of the next one
  std::size_t after;   // index of the line in the text after; for a removed line, of the next one
};

// Returns the lines of both texts in order: lines that are equal, removed and added, with the
// removed ones of a change before the added ones. Their number is minimal unless the product of the
// numbers of lines that remain without equal beginnings and ends exceeds a million; then all those
// lines are changed. So time and memory are bounded by the texts and a constant.
std::vector<line_change> line_changes(const std::vector<std::string_view>& before,
                                      const std::vector<std::string_view>& after);

struct diff_options {
  std::size_t context_lines = 3;      // equal lines that are shown around a change
  std::size_t max_rows = 2000;        // of the table; the number of further rows is said
  std::size_t max_bytes = 2U << 20U;  // of HTML: no row begins after them
};

// Return a table of the differences of two texts. Equal lines that are not shown are counted. Lines
// are cut after 4 KiB. Side by side, the changed part of lines that replace each other is marked.
// Thread-safe.
html::element unified_diff(std::string_view before, std::string_view after,
                           const diff_options& options = {});
html::element side_by_side_diff(std::string_view before, std::string_view after,
                                const diff_options& options = {});

}  // namespace hone
