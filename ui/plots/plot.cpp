#include "ui/plots/plot.hpp"

#include <utility>

#include "ui/html/numbers.hpp"
#include "ui/plots/marks.hpp"

namespace hone::plots {

using html::element;

element data_table(const std::vector<std::string>& headers, const std::vector<table_row>& rows,
                   std::size_t text_columns) {
  const auto css_class = [&](std::size_t column) {
    return column < text_columns ? html::attributes{} : html::attributes{{"class", "n"}};
  };
  element head("tr");
  for (std::size_t i = 0; i < headers.size(); ++i) {
    html::attributes properties = css_class(i);
    properties.push_back({"scope", "col"});
    head.add(element("th", std::move(properties), {html::text(headers[i])}));
  }
  element body("tbody");
  for (const table_row& row : rows) {
    element line("tr");
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      element cell = html::text(row.cells[i]);
      if (i == 0 && row.link) cell = element("a", {html::href(*row.link)}, {std::move(cell)});
      if (const auto link = row.links.find(i); link != row.links.end())
        cell = element("a", {html::href(link->second)}, {std::move(cell)});
      line.add(i == 0 ? element("th", {{"scope", "row"}}, {std::move(cell)})
                      : element("td", css_class(i), {std::move(cell)}));
    }
    body.add(std::move(line));
  }
  return element("table", {}, {element("thead", {}, {std::move(head)}), std::move(body)});
}

plot no_data(std::string_view title) {
  picture empty(640);
  empty.add(label_mark({320, 38}, text_anchor::middle, "no data", 20));
  return {std::move(empty).finish(64, title, "There are no data."),
          element("p", {}, {html::text("There are no data.")})};
}

element scrollable(element inner, std::string_view label) {
  // Scrollable regions must be focusable.
  return element("div",
                 {{"class", "scroll"},
                  {"tabindex", "0"},
                  {"role", "group"},
                  {"aria-label", std::string(label)}},
                 {std::move(inner)});
}

element wide_table(const std::vector<std::string>& headers, const std::vector<table_row>& rows,
                   std::size_t text_columns) {
  return scrollable(data_table(headers, rows, text_columns), "Table: " + headers.at(0));
}

element figure(plot content, std::string_view caption) {
  return element("figure", {},
                 {element("figcaption", {}, {html::text(caption)}),
                  scrollable(std::move(content.picture), caption),
                  element("details", {},
                          {element("summary", {}, {html::text("Table")}),
                           scrollable(std::move(content.table), caption)})});
}

std::string left_out_note(std::size_t count, std::string_view things, std::string_view reason) {
  if (count == 0) return "";
  return " Left out: " + count_text(count) + " " + std::string(things) + " " + std::string(reason) +
         ".";
}

std::size_t merged_count(std::size_t values, std::size_t max_values) {
  return values <= max_values ? 1 : (values + max_values - 1) / max_values;
}

}  // namespace hone::plots
