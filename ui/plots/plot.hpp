#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ui/html/element.hpp"

namespace hone::plots {

// A picture and the numbers that it shows.
struct plot {
  html::element picture;
  html::element table;
};

struct table_row {
  std::vector<std::string> cells;            // the first is the row's name
  std::optional<html::url> link;             // of the name
  std::map<std::size_t, html::url> links{};  // of further cells
};

// Returns a table whose columns are right-aligned numbers, except the first `text_columns`.
html::element data_table(const std::vector<std::string>& headers,
                         const std::vector<table_row>& rows, std::size_t text_columns = 1);

// Returns an element in a box that scrolls sideways where it is too wide, also by keyboard.
html::element scrollable(html::element inner, std::string_view label);

// Returns data_table() in such a box; its label is that of the first column.
html::element wide_table(const std::vector<std::string>& headers,
                         const std::vector<table_row>& rows, std::size_t text_columns = 1);

// Returns a plot without marks, for a title without data.
plot no_data(std::string_view title);

// Returns a <figure> of the plot with a caption and, folded, its table.
html::element figure(plot content, std::string_view caption);

// Returns " Left out: 3 THINGS REASON." or, for a count of 0, nothing.
std::string left_out_note(std::size_t count, std::string_view things, std::string_view reason);

// Returns how many consecutive values to merge into one, so that at most `max_values` remain.
std::size_t merged_count(std::size_t values, std::size_t max_values);

}  // namespace hone::plots
