#include "ui/plots/speedup_plots.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "ui/html/numbers.hpp"
#include "ui/plots/marks.hpp"
#include "ui/plots/run_plots.hpp"

namespace hone::plots {
namespace {

using html::element;

constexpr double width = 640;
constexpr double row_px = 22;
constexpr double names_right = 168;  // of the labels of rows
constexpr double rows_right = width - 64;
constexpr std::size_t max_rows = 400;
constexpr std::size_t max_points = 2000;
constexpr std::string_view not_drawable = "that are not finite and positive or too large";

// The frame of a plot by rows: names at the left, speed-ups at the right, the axis below.
class row_chart {
 public:
  row_chart(const value_range& range, std::size_t rows, const std::vector<legend_entry>& legend)
      : chart_(width),
        top_(chart_.add_legend(legend, 4) + 6),
        bottom_(top_ + row_px * static_cast<double>(rows)),
        x_(range, names_right, rows_right) {
    chart_.add_x_axis(x_, top_, bottom_, "speed-up");
    if (range.low() <= 1 && range.high() >= 1) {
      chart_.add(rule_mark({x_(1), top_}, {x_(1), bottom_}, "reference"));
    }
  }

  double x(double speedup) const { return x_(speedup); }
  double y(std::size_t row) const { return top_ + row_px * (static_cast<double>(row) + 0.5); }
  double top() const { return top_; }
  double bottom() const { return bottom_; }
  picture& marks() { return chart_; }

  element finish(std::string_view title, std::string_view description) && {
    return std::move(chart_).finish(bottom_ + 40, title, description);
  }

  void add_row(std::size_t row, std::string_view name, double speedup,
               const std::optional<html::url>& link) {
    chart_.add(label_mark({names_right - 10, y(row) + 4}, text_anchor::end, name, 22), link);
    chart_.add(label_mark({width, y(row) + 4}, text_anchor::end, speedup_text(speedup), 9));
  }

 private:
  picture chart_;
  double top_;
  double bottom_;
  axis x_;
};

std::string rows_note(std::size_t rows) {
  return left_out_note(rows - std::min(rows, max_rows), "rows", "after the first 400");
}

table_row task_row(const task_speedups& row) {
  std::string all;
  for (const double s : row.measurements) all += (all.empty() ? "" : ", ") + speedup_text(s);
  std::string baselines;
  for (const baseline_speedup& b : row.baselines) {
    baselines += (baselines.empty() ? "" : ", ") + b.name + " " + speedup_text(b.speedup);
  }
  return {{row.task, speedup_text(row.speedup), std::move(all), std::move(baselines)}, row.link};
}

std::string_view origin_name(variant_origin origin) {
  constexpr std::string_view names[] = {"policy", "copy", "corpus"};
  return names[static_cast<std::size_t>(origin)];
}

dot_shape origin_shape(variant_origin origin) {
  constexpr dot_shape shapes[] = {dot_shape::circle, dot_shape::triangle, dot_shape::square};
  return shapes[static_cast<std::size_t>(origin)];
}

// The variants that can be drawn, and what their axes show.
struct drawable_variants {
  std::vector<const variant_point*> points;  // in the order of versions
  value_range versions{axis_scale::whole};
  value_range speedups{axis_scale::ratio};
  double best = 0;
  std::array<bool, outcome_names.size()> occurs{};
};

drawable_variants drawable(const std::vector<variant_point>& points) {
  drawable_variants kept;
  for (const variant_point& p : points) {
    if (!is_drawable(axis_scale::whole, p.version) || p.outcome >= outcome_names.size()) continue;
    if (p.outcome == 0 && !kept.speedups.add(p.speedup)) continue;
    if (p.outcome == 0) kept.best = std::max(kept.best, p.speedup);
    kept.versions.add(p.version);
    kept.occurs[p.outcome] = true;
    kept.points.push_back(&p);
  }
  std::ranges::stable_sort(kept.points, {}, &variant_point::version);
  kept.speedups.add(1);
  kept.speedups.widen(0.05);
  return kept;
}

std::string variant_title(const variant_point& p) {
  return p.name + ", version " + decimal_text(p.version, 0) + ": " +
         (p.outcome == 0 ? speedup_text(p.speedup) : std::string(outcome_names[p.outcome]));
}

using cell_place = std::tuple<std::size_t, int, int>;  // outcome, column and row

// A variant or, if there are too many, a cell of them.
struct variant_cell {
  const variant_point* best;
  std::size_t count;
};

// The picture of variant_scatter, with a lane for each outcome that failed below the others.
class scatter_chart {
 public:
  explicit scatter_chart(const drawable_variants& drawn)
      : chart_(width), x_(drawn.versions, left + 8, right - 8), y_(drawn.speedups, bottom, top) {
    for (std::size_t k = 1; k < lane_y_.size(); ++k) {
      if (!drawn.occurs[k]) continue;
      lane_y_[k] = lanes_bottom_ + lane_px / 2;
      lanes_bottom_ += lane_px;
    }
    chart_.add_legend({{"best so far", "line frontier"}}, left);
    for (const auto origin :
         {variant_origin::generated, variant_origin::copied, variant_origin::corpus}) {
      const double at = left + 130 + 110 * static_cast<double>(origin);
      chart_.add(dot_mark({at, 10}, 4, origin_shape(origin), "s0", ""));
      chart_.add(label_mark({at + 10, 14}, text_anchor::start, origin_name(origin), 12));
    }
    chart_.add_x_axis(x_, top, lanes_bottom_, "version");
    chart_.add_y_axis(y_, left, right, "speed-up");
    chart_.add(rule_mark({left, y_(1)}, {right, y_(1)}, "reference"));
    for (std::size_t k = 1; k < lane_y_.size(); ++k) {
      if (!drawn.occurs[k]) continue;
      chart_.add(label_mark({left - 6, lane_y_[k] + 4}, text_anchor::end, outcome_names[k], 14));
    }
  }

  cell_place place_of(const variant_point& p) const {
    const position at = center(p);
    return {p.outcome, static_cast<int>((at.x - left) / cell_px),
            static_cast<int>((at.y - top) / cell_px)};
  }

  void add_variant(const variant_point& p) {
    const std::string css_class = "dot o" + std::to_string(p.outcome);
    chart_.add(dot_mark(center(p), 4, origin_shape(p.origin), css_class, variant_title(p)), p.link);
  }

  // Draws a cell, darker where it has more variants.
  void add_cell(const cell_place& place, const variant_cell& cell, std::size_t max_count) {
    const auto [outcome, column, row] = place;
    std::string title = variant_title(*cell.best);
    if (cell.count > 1) title = count_text(cell.count) + " variants, best " + title;
    const double share = 0.25 + 0.75 * std::log(static_cast<double>(cell.count) + 1) /
                                    std::log(static_cast<double>(max_count) + 1);
    const position corner{left + cell_px * column, top + cell_px * row};
    const position in_lane{corner.x, lane_y_[outcome] - 5};
    const std::string color = "o" + std::to_string(outcome);
    element square = outcome == 0 ? bar_mark(corner, cell_px - 1, cell_px - 1, color, title)
                                  : bar_mark(in_lane, cell_px - 1, 10, color, title);
    chart_.add(element("g", {{"fill-opacity", decimal_text(share, 2)}}, {std::move(square)}),
               cell.best->link);
  }

  // Draws the best speed-up so far over the versions.
  void add_frontier(const drawable_variants& drawn) {
    std::vector<position> steps;
    double best = 0;
    for (const variant_point* p : drawn.points) {
      if (p->outcome > 0 || p->speedup <= best) continue;
      best = p->speedup;
      steps.push_back(center(*p));
    }
    if (steps.empty()) return;
    steps.push_back({x_(drawn.versions.high()), steps.back().y});
    chart_.add(step_mark(steps, "line frontier"));
  }

  element finish(std::string_view title, std::string_view description) && {
    return std::move(chart_).finish(lanes_bottom_ + 40, title, description);
  }

 private:
  static constexpr double left = 104;
  static constexpr double right = width - 16;
  static constexpr double top = 48;
  static constexpr double bottom = 300;
  static constexpr double lane_px = 16;
  static constexpr double cell_px = 8;

  position center(const variant_point& p) const {
    return {x_(p.version), p.outcome == 0 ? y_(p.speedup) : lane_y_[p.outcome]};
  }

  picture chart_;
  axis x_;
  axis y_;
  std::array<double, outcome_names.size()> lane_y_{};
  double lanes_bottom_ = bottom + 6;
};

}  // namespace

plot speedups_by_task(std::string_view title, const std::vector<task_speedups>& rows) {
  value_range range(axis_scale::ratio);
  std::vector<std::string> baseline_names;
  for (const task_speedups& row : rows) {
    range.add(row.speedup);
    for (const double speedup : row.measurements) range.add(speedup);
    for (const baseline_speedup& b : row.baselines) {
      range.add(b.speedup);
      const auto known = std::find(baseline_names.begin(), baseline_names.end(), b.name);
      if (known == baseline_names.end() && baseline_names.size() < max_legend_entries) {
        baseline_names.push_back(b.name);
      }
    }
  }
  const std::size_t left_out = range.skipped();
  if (range.empty()) return no_data(title);
  range.add(1);
  range.widen(0.04);

  const auto baseline_class = [&](const std::string& name) {
    const auto found = std::find(baseline_names.begin(), baseline_names.end(), name);
    const auto index = static_cast<std::size_t>(found - baseline_names.begin());
    return "baseline s" + std::to_string(1 + index % 5) + " dash" + std::to_string(index / 5 % 3);
  };
  std::vector<legend_entry> legend;
  for (const std::string& name : baseline_names) legend.push_back({name, baseline_class(name)});
  row_chart chart(range, std::min(rows.size(), max_rows), legend);
  const auto is_ratio = [](double s) { return is_drawable(axis_scale::ratio, s); };
  std::vector<table_row> table;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const task_speedups& row = rows[i];
    table.push_back(task_row(row));
    if (i >= max_rows) continue;
    const double y = chart.y(i);
    chart.add_row(i, row.task, row.speedup, row.link);
    for (const baseline_speedup& b : row.baselines) {
      if (!is_ratio(b.speedup)) continue;
      element tick("g", {}, {element("title", {}, {html::text(b.name)})});
      tick.add(rule_mark({chart.x(b.speedup), y - 8}, {chart.x(b.speedup), y + 8},
                         baseline_class(b.name)));
      chart.marks().add(std::move(tick));
    }
    for (const double s : row.measurements) {
      if (!is_ratio(s)) continue;
      chart.marks().add(
          dot_mark({chart.x(s), y}, 2.5, dot_shape::circle, "measured", speedup_text(s)));
    }
    if (!is_ratio(row.speedup)) continue;
    chart.marks().add(dot_mark({chart.x(row.speedup), y}, 5.5, dot_shape::circle, "headline s0",
                               row.task + ": " + speedup_text(row.speedup)));
  }
  return {std::move(chart).finish(title, "Speed-up of " + count_text(rows.size()) +
                                             " tasks with their measurements and baselines." +
                                             rows_note(rows.size()) +
                                             left_out_note(left_out, "values", not_drawable)),
          data_table({"task", "speed-up", "measurements", "baselines"}, table)};
}

plot measurements(std::string_view title, const std::vector<measurement_row>& rows) {
  value_range range(axis_scale::ratio);
  std::vector<double> speedups;
  for (const measurement_row& row : rows) {
    if (range.add(row.speedup)) speedups.push_back(row.speedup);
    range.add(row.low);
    range.add(row.high);
  }
  const std::size_t left_out = range.skipped();
  if (speedups.empty()) return no_data(title);
  // The lower one of the middle two, as in a variant's headline.
  std::sort(speedups.begin(), speedups.end());
  const double median = speedups[(speedups.size() - 1) / 2];
  range.widen(0.04);

  row_chart chart(range, std::min(rows.size(), max_rows), {});
  chart.marks().add(
      rule_mark({chart.x(median), chart.top()}, {chart.x(median), chart.bottom()}, "median"));
  std::vector<table_row> table;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const measurement_row& row = rows[i];
    table.push_back(
        {{row.name, speedup_text(row.speedup), speedup_text(row.low), speedup_text(row.high)}, {}});
    if (i >= max_rows) continue;
    const double y = chart.y(i);
    chart.add_row(i, row.name, row.speedup, {});
    if (is_drawable(axis_scale::ratio, row.low) && is_drawable(axis_scale::ratio, row.high)) {
      chart.marks().add(
          interval_mark({chart.x(row.low), y}, {chart.x(row.high), y}, "interval s0"));
    }
    if (!is_drawable(axis_scale::ratio, row.speedup)) continue;
    chart.marks().add(dot_mark({chart.x(row.speedup), y}, 4, dot_shape::circle, "s0",
                               row.name + ": " + speedup_text(row.speedup)));
  }
  return {std::move(chart).finish(title, count_text(rows.size()) +
                                             " measurements with their 95 % intervals; median " +
                                             speedup_text(median) + "." + rows_note(rows.size()) +
                                             left_out_note(left_out, "values", not_drawable)),
          data_table({"measurement", "speed-up", "95 % low", "95 % high"}, table)};
}

plot variant_scatter(std::string_view title, const std::vector<variant_point>& points) {
  const drawable_variants drawn = drawable(points);
  if (drawn.points.empty()) return no_data(title);
  scatter_chart chart(drawn);

  // Without cells, each variant is drawn and listed alone.
  const bool is_binned = drawn.points.size() > max_points;
  std::map<cell_place, variant_cell> cells;
  std::size_t max_count = 1;
  for (std::size_t i = 0; i < drawn.points.size(); ++i) {
    const variant_point* p = drawn.points[i];
    const cell_place place =
        is_binned ? chart.place_of(*p) : cell_place{p->outcome, static_cast<int>(i), 0};
    variant_cell& cell = cells.try_emplace(place, variant_cell{p, 0}).first->second;
    max_count = std::max(max_count, ++cell.count);
    if (p->outcome == 0 && p->speedup > cell.best->speedup) cell.best = p;
  }
  std::vector<table_row> table;
  for (const auto& [place, cell] : cells) {
    const variant_point& p = *cell.best;
    if (is_binned) {
      chart.add_cell(place, cell, max_count);
    } else {
      chart.add_variant(p);
    }
    table.push_back({{p.name, std::string(outcome_names[p.outcome]),
                      std::string(origin_name(p.origin)), decimal_text(p.version, 0),
                      p.outcome == 0 ? speedup_text(p.speedup) : "-", count_text(cell.count)},
                     p.link});
  }
  chart.add_frontier(drawn);
  const std::size_t left_out = points.size() - drawn.points.size();
  std::string description = count_text(drawn.points.size()) + " variants by version and speed-up" +
                            (drawn.best > 0 ? ", best " + speedup_text(drawn.best) : "") +
                            "; lanes below for those that failed." +
                            left_out_note(left_out, "variants", not_drawable);
  if (is_binned) description += " Each cell merges several variants and links to the best.";
  return {
      std::move(chart).finish(title, description),
      data_table({"variant", "outcome", "origin", "version", "speed-up", "variants"}, table, 3)};
}

plot histogram(std::string_view title, const std::vector<speedup_bucket>& buckets) {
  value_range range(axis_scale::ratio);
  value_range counts(axis_scale::whole);
  std::size_t left_out = 0;
  std::vector<speedup_bucket> drawn;
  for (const speedup_bucket& b : buckets) {
    if (!is_drawable(axis_scale::ratio, b.low) || !is_drawable(axis_scale::ratio, b.high) ||
        !counts.add(static_cast<double>(b.count))) {
      ++left_out;
      continue;
    }
    range.add(b.low);
    range.add(b.high);
    drawn.push_back(b);
  }
  if (drawn.empty()) return no_data(title);
  counts.add(0);
  constexpr double left = 56;
  constexpr double right = width - 16;
  constexpr double bottom = 200;
  picture chart(width);
  const axis x(range, left, right);
  const axis y(counts, bottom, 26);
  chart.add_x_axis(x, 26, bottom, "speed-up");
  chart.add_y_axis(y, left, right, "variants");
  std::vector<table_row> table;
  for (const speedup_bucket& b : drawn) {
    const double from = x(std::min(b.low, b.high));
    const double end = y(static_cast<double>(b.count));
    const std::string name = speedup_text(b.low) + " to " + speedup_text(b.high);
    chart.add(bar_mark({from + 0.5, end}, x(std::max(b.low, b.high)) - from - 1, bottom - end, "o0",
                       name + ": " + count_text(b.count)));
    table.push_back({{name, count_text(b.count)}, {}});
  }
  return {std::move(chart).finish(bottom + 40, title,
                                  "Numbers of variants by speed-up." +
                                      left_out_note(left_out, "buckets", not_drawable)),
          data_table({"speed-up", "variants"}, table)};
}

}  // namespace hone::plots
