#include "ui/plots/marks.hpp"

#include <algorithm>
#include <cmath>

#include "ui/html/characters.hpp"
#include "ui/html/numbers.hpp"

namespace hone::plots {
namespace {

using html::children;
using html::element;

constexpr double row_px = 18;  // of a legend
constexpr std::size_t max_legend_columns = 24;

// Returns a position rounded to a tenth of a pixel.
std::string px(double value) {
  std::string written = decimal_text(value, 1);
  if (written.ends_with(".0")) written.resize(written.size() - 2);
  return written;
}

void append_points(std::string& path, const std::vector<position>& points) {
  for (const position& p : points) {
    path += (path.empty() ? "M" : "L") + px(p.x) + " " + px(p.y);
  }
}

element path_mark(std::string path, std::string css_class) {
  return element("path", {{"class", std::move(css_class)}, {"d", std::move(path)}});
}

element with_title(element mark, std::string_view title) {
  if (!title.empty()) mark.add(element("title", {}, {html::text(title)}));
  return mark;
}

}  // namespace

element line_mark(const std::vector<position>& points, std::string css_class) {
  std::string path;
  append_points(path, points);
  return path_mark(std::move(path), std::move(css_class));
}

element step_mark(const std::vector<position>& points, std::string css_class) {
  std::string path;
  for (const position& p : points) {
    path += path.empty() ? "M" + px(p.x) + " " + px(p.y) : "H" + px(p.x) + "V" + px(p.y);
  }
  return path_mark(std::move(path), std::move(css_class));
}

element band_mark(const std::vector<position>& upper, const std::vector<position>& lower,
                  std::string css_class) {
  std::string path;
  append_points(path, upper);
  append_points(path, {lower.rbegin(), lower.rend()});
  return path_mark(path + "Z", std::move(css_class));
}

element rule_mark(position from, position to, std::string css_class) {
  return element("line", {{"class", std::move(css_class)},
                          {"x1", px(from.x)},
                          {"y1", px(from.y)},
                          {"x2", px(to.x)},
                          {"y2", px(to.y)}});
}

element interval_mark(position from, position to, std::string css_class) {
  const bool is_horizontal = from.y == to.y;
  std::string path = "M" + px(from.x) + " " + px(from.y) + "L" + px(to.x) + " " + px(to.y);
  for (const position& end : {from, to}) {
    path += is_horizontal ? "M" + px(end.x) + " " + px(end.y - 3) + "v6"
                          : "M" + px(end.x - 3) + " " + px(end.y) + "h6";
  }
  return path_mark(std::move(path), std::move(css_class));
}

element bar_mark(position corner, double width, double height, std::string css_class,
                 std::string_view title) {
  return with_title(element("rect", {{"class", std::move(css_class)},
                                     {"x", px(corner.x)},
                                     {"y", px(corner.y)},
                                     {"width", px(std::max(width, 0.0))},
                                     {"height", px(std::max(height, 0.0))}}),
                    title);
}

element dot_mark(position center, double radius, dot_shape shape, std::string css_class,
                 std::string_view title) {
  if (shape == dot_shape::square) {
    return bar_mark({center.x - radius, center.y - radius}, 2 * radius, 2 * radius,
                    std::move(css_class), title);
  }
  if (shape == dot_shape::triangle) {
    return with_title(
        path_mark("M" + px(center.x) + " " + px(center.y - 1.2 * radius) + "l" + px(1.2 * radius) +
                      " " + px(2.1 * radius) + "h" + px(-2.4 * radius) + "Z",
                  std::move(css_class)),
        title);
  }
  return with_title(element("circle", {{"class", std::move(css_class)},
                                       {"cx", px(center.x)},
                                       {"cy", px(center.y)},
                                       {"r", px(radius)}}),
                    title);
}

element label_mark(position baseline, text_anchor anchor, std::string_view label,
                   std::size_t max_columns, std::string css_class) {
  constexpr std::string_view anchors[] = {"start", "middle", "end"};
  const std::string shown = html::shortened(label, max_columns);
  element mark("text", {{"class", std::move(css_class)},
                        {"x", px(baseline.x)},
                        {"y", px(baseline.y)},
                        {"text-anchor", std::string(anchors[static_cast<std::size_t>(anchor)])}});
  if (shown != label) mark = with_title(std::move(mark), label);
  mark.add(html::text(shown));
  return mark;
}

void picture::add(element mark, const std::optional<html::url>& target) {
  if (!target) return add(std::move(mark));
  has_links_ = true;
  add(element("a", {html::href(*target)}, {std::move(mark)}));
}

void picture::add_x_axis(const axis& x, double top, double bottom, std::string_view name) {
  const double width = std::abs(x.last() - x.first());
  double free_from = -1e9;  // where the label before ends
  for (const axis_tick& tick : x.ticks(static_cast<std::size_t>(std::max(width / 64, 2.0)))) {
    const double at = x(tick.value);
    add(rule_mark({at, top}, {at, bottom}, "grid"));
    const double half = static_cast<double>(tick.label.size()) * column_px / 2;
    if (at - half < free_from) continue;
    add(label_mark({at, bottom + 16}, text_anchor::middle, tick.label, 16));
    free_from = at + half + column_px;
  }
  add(rule_mark({x.first(), bottom}, {x.last(), bottom}, "axis"));
  if (name.empty()) return;
  add(label_mark({(x.first() + x.last()) / 2, bottom + 33}, text_anchor::middle, name,
                 static_cast<std::size_t>(width / column_px), "axis-name"));
}

void picture::add_y_axis(const axis& y, double left, double right, std::string_view name) {
  const double height = std::abs(y.last() - y.first());
  for (const axis_tick& tick : y.ticks(static_cast<std::size_t>(std::max(height / 32, 2.0)))) {
    const double at = y(tick.value);
    add(rule_mark({left, at}, {right, at}, "grid"));
    add(label_mark({left - 6, at + 4}, text_anchor::end, tick.label, 9));
  }
  add(rule_mark({left, y.first()}, {left, y.last()}, "axis"));
  if (name.empty()) return;
  add(label_mark({2, std::min(y.first(), y.last()) - 9}, text_anchor::start, name, 60,
                 "axis-name"));
}

void picture::add_right_labels(const axis& y, const std::vector<axis_tick>& ticks, double right) {
  for (const axis_tick& tick : ticks) {
    add(label_mark({right + 6, y(tick.value) + 4}, text_anchor::start, tick.label, 9));
  }
}

double picture::add_legend(const std::vector<legend_entry>& entries, double left) {
  const std::size_t shown = std::min(entries.size(), max_legend_entries);
  double x = left;
  double baseline = 14;
  const auto place = [&](double width) {
    if (x > left && x + width > width_) {
      x = left;
      baseline += row_px;
    }
    const double at = x;
    x += width;
    return at;
  };
  for (std::size_t i = 0; i < shown; ++i) {
    const legend_entry& entry = entries[i];
    const std::string name = html::shortened(entry.name, max_legend_columns);
    const std::size_t columns = html::columns_of(name, max_legend_columns);
    const double at = place(26 + static_cast<double>(columns) * column_px + 12);
    add(entry.is_area ? bar_mark({at + 6, baseline - 10}, 14, 11, entry.css_class, "")
                      : rule_mark({at, baseline - 4}, {at + 20, baseline - 4}, entry.css_class));
    add(label_mark({at + 25, baseline}, text_anchor::start, entry.name, max_legend_columns));
  }
  if (shown < entries.size()) {
    const std::string others = "and " + count_text(entries.size() - shown) + " more";
    const double at = place(static_cast<double>(others.size()) * column_px);
    add(label_mark({at, baseline}, text_anchor::start, others, others.size()));
  }
  return entries.empty() ? 0 : baseline + 8;
}

element picture::finish(double height, std::string_view title, std::string_view description) && {
  return element("svg",
                 {{"class", "plot"},
                  {"role", has_links_ ? "group" : "img"},
                  {"viewBox", "0 0 " + px(width_) + " " + px(height)}},
                 {element("title", {}, {html::text(title)}),
                  element("desc", {}, {html::text(description)}), std::move(marks_)});
}

}  // namespace hone::plots
