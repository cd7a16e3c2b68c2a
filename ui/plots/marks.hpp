#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ui/html/element.hpp"
#include "ui/plots/axis.hpp"

// Marks of SVG pictures and the frame around them. Positions are pixels of the picture, y grows
// downward. Marks are styled by the classes of ui/style.css only, because
// pages refuse inline styles. Functions are pure and thread-safe; positions must be finite.
namespace hone::plots {

struct position {
  double x;
  double y;
};

html::element line_mark(const std::vector<position>& points, std::string css_class);
// Draws a line that keeps its y until the x of the next point.
html::element step_mark(const std::vector<position>& points, std::string css_class);
// Draws the area between two lines of equal length with the same x.
html::element band_mark(const std::vector<position>& upper, const std::vector<position>& lower,
                        std::string css_class);
html::element rule_mark(position from, position to, std::string css_class);
// Draws an error bar with caps, horizontal or vertical.
html::element interval_mark(position from, position to, std::string css_class);
html::element bar_mark(position corner, double width, double height, std::string css_class,
                       std::string_view title);

enum class dot_shape { circle, square, triangle };
html::element dot_mark(position center, double radius, dot_shape shape, std::string css_class,
                       std::string_view title);

enum class text_anchor { start, middle, end };
// Draws a text of at most `max_columns` columns (see html::shortened); a longer one gets its whole
// text as title.
html::element label_mark(position baseline, text_anchor anchor, std::string_view label,
                         std::size_t max_columns, std::string css_class = "label");

// Pixels of a column of a label's font, rounded up.
inline constexpr double column_px = 7;

struct legend_entry {
  std::string name;
  std::string css_class;  // of the line or, with `is_area`, of the square
  bool is_area = false;
};

// A picture with its marks: <svg> with a title and a description. Its role is "img", or "group" if
// it has links, since a reader cannot follow links inside an image.
class picture {
 public:
  explicit picture(double width) : width_(width) {}

  void add(html::element mark) { marks_.add(std::move(mark)); }
  void add(html::element mark, const std::optional<html::url>& target);

  // Draws the axis below the area between `top` and `bottom`, with vertical grid lines.
  void add_x_axis(const axis& x, double top, double bottom, std::string_view name);
  // Draws the axis at the left of the area between `left` and `right`, with horizontal grid lines,
  // or at its right without them.
  void add_y_axis(const axis& y, double left, double right, std::string_view name);
  void add_right_labels(const axis& y, const std::vector<axis_tick>& ticks, double right);

  // Draws the entries in rows from the top, as many per row as fit without overlaps, and returns
  // the y below them. Draws at most `max_legend_entries` and the number of the others.
  double add_legend(const std::vector<legend_entry>& entries, double left);

  html::element finish(double height, std::string_view title, std::string_view description) &&;

 private:
  double width_;
  html::element marks_;
  bool has_links_ = false;
};

inline constexpr std::size_t max_legend_entries = 16;

}  // namespace hone::plots
