#include "ui/plots/run_plots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ui/html/characters.hpp"
#include "ui/html/numbers.hpp"
#include "ui/plots/marks.hpp"

namespace hone::plots {
namespace {

using html::element;

constexpr double width = 640;
constexpr double left = 56;
constexpr double right = width - 56;

std::string x_text(axis_scale scale, double x) {
  if (scale == axis_scale::seconds) return seconds_label(x);
  return std::abs(x) < 1e15 ? decimal_text(x, x == std::round(x) ? 0 : 2) : number_text(x);
}

struct drawn_series {
  std::string name;
  std::vector<curve_point> points;
  std::size_t merged = 1;
};

bool has_interval(const curve_point& p) { return std::isfinite(p.low) && std::isfinite(p.high); }

// Returns the points that can be drawn, merged if they are too many.
drawn_series drawn(const learning_series& series, axis_scale x_scale, std::size_t& left_out) {
  drawn_series kept{series.name, {}, 1};
  for (curve_point p : series.points) {
    if (!is_drawable(x_scale, p.x) ||
        !is_drawable(axis_scale::ratio, std::exp(p.mean_log_speedup))) {
      ++left_out;
      continue;
    }
    // Ends of intervals beyond the scale are drawn at its end.
    if (has_interval(p)) {
      p.low = std::max(p.low, -27.0);
      p.high = std::min(p.high, 27.0);
    }
    kept.points.push_back(p);
  }
  kept.merged = merged_count(kept.points.size(), 400);
  if (kept.merged == 1) return kept;
  std::vector<curve_point> merged;
  for (std::size_t begin = 0; begin < kept.points.size(); begin += kept.merged) {
    const std::size_t end = std::min(begin + kept.merged, kept.points.size());
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    curve_point sum{0, 0, none, none};
    for (std::size_t i = begin; i < end; ++i) {
      const curve_point& p = kept.points[i];
      sum.x += p.x / static_cast<double>(end - begin);
      sum.mean_log_speedup += p.mean_log_speedup / static_cast<double>(end - begin);
      if (!has_interval(p)) continue;
      sum.low = std::fmin(sum.low, p.low);  // fmin and fmax ignore NaN
      sum.high = std::fmax(sum.high, p.high);
    }
    merged.push_back(sum);
  }
  kept.points = std::move(merged);
  return kept;
}

// Colors repeat after six series, with another dash.
std::string series_class(std::size_t i) {
  return "s" + std::to_string(i % 6) + " dash" + std::to_string(i / 6 % 3);
}

void add_band(picture& chart, const std::vector<curve_point>& points, const axis& x, const axis& y,
              std::size_t series) {
  std::vector<position> upper;
  std::vector<position> lower;
  const auto finish = [&] {
    if (upper.size() > 1) {
      chart.add(band_mark(upper, lower, "band s" + std::to_string(series % 6)));
    }
    upper.clear();
    lower.clear();
  };
  for (const curve_point& p : points) {
    if (has_interval(p)) {
      upper.push_back({x(p.x), y(p.high)});
      lower.push_back({x(p.x), y(p.low)});
    } else {
      finish();
    }
  }
  finish();
}

void add_borders(picture& chart, const std::vector<stage_border>& borders, const axis& x,
                 axis_scale x_scale, double top, double bottom) {
  double free_from = 0;
  for (const stage_border& border : borders) {
    if (!is_drawable(x_scale, border.x)) continue;
    const double at = x(border.x);
    chart.add(rule_mark({at, top}, {at, bottom}, "border"));
    if (at < free_from) continue;
    const bool is_near_end = at + 14 * column_px > right;
    chart.add(label_mark({is_near_end ? at - 4 : at + 4, top + 12},
                         is_near_end ? text_anchor::end : text_anchor::start, border.stage, 14));
    free_from = at + 15 * column_px;
  }
}

element learning_table(const std::vector<drawn_series>& series, std::string_view x_name,
                       axis_scale x_scale) {
  std::vector<table_row> rows;
  for (const drawn_series& s : series) {
    for (const curve_point& p : s.points) {
      rows.push_back({{s.name, x_text(x_scale, p.x), decimal_text(p.mean_log_speedup, 3),
                       decimal_text(p.low, 3), decimal_text(p.high, 3),
                       speedup_text(std::exp(p.mean_log_speedup))},
                      {}});
    }
  }
  return data_table(
      {"series", std::string(x_name), "mean log speed-up", "95 % low", "95 % high", "speed-up"},
      rows);
}

// Labels the right of an axis of log speed-ups with speed-ups.
void add_speedup_labels(picture& chart, const value_range& logs, const axis& y) {
  value_range ratios(axis_scale::ratio);
  ratios.add(std::exp(std::max(logs.low(), -27.0)));
  ratios.add(std::exp(std::min(logs.high(), 27.0)));
  std::vector<axis_tick> ticks = axis(ratios, y.first(), y.last()).ticks(8);
  for (axis_tick& tick : ticks) tick.value = std::log(tick.value);
  chart.add_right_labels(y, ticks, right);
}

// Returns " Stages: sft from 0, grpo from 10." for at most 20 borders.
std::string stages_text(const std::vector<stage_border>& borders, axis_scale x_scale) {
  std::string all;
  for (std::size_t i = 0; i < std::min<std::size_t>(borders.size(), 20); ++i) {
    all += (i == 0 ? " Stages: " : ", ") + html::shortened(borders[i].stage, 40) + " from " +
           x_text(x_scale, borders[i].x);
  }
  return all.empty() ? all : all + ".";
}

struct outcome_bar {
  std::string name;
  std::array<double, outcome_names.size()> counts{};
  double total = 0;
};

// Adds up `merged` points per bar and leaves out bars without samples.
std::vector<outcome_bar> outcome_bars(const std::vector<outcome_point>& points, std::size_t merged,
                                      std::size_t& left_out) {
  std::vector<outcome_bar> bars;
  for (std::size_t begin = 0; begin < points.size(); begin += merged) {
    outcome_bar sum{x_text(axis_scale::whole, points[begin].x), {}, 0};
    for (std::size_t i = begin; i < std::min(begin + merged, points.size()); ++i) {
      for (std::size_t k = 0; k < outcome_names.size(); ++k) {
        const auto count = static_cast<double>(points[i].counts[k]);
        sum.counts[k] += count;
        sum.total += count;
      }
    }
    if (sum.total == 0) ++left_out;
    if (sum.total > 0) bars.push_back(std::move(sum));
  }
  return bars;
}

// Neighboring cells of a lane, drawn as one.
struct merged_cell {
  std::size_t begin;  // index of the first cell
  std::size_t end;
  double busy_sum;  // of the known cells
  std::size_t known;
};

std::vector<merged_cell> merged_cells(const std::vector<double>& busy, std::size_t merged) {
  std::vector<merged_cell> cells;
  for (std::size_t begin = 0; begin < busy.size(); begin += merged) {
    merged_cell cell{begin, std::min(begin + merged, busy.size()), 0, 0};
    for (std::size_t k = cell.begin; k < cell.end; ++k) {
      if (!std::isfinite(busy[k])) continue;
      cell.busy_sum += std::clamp(busy[k], 0.0, 1.0);
      ++cell.known;
    }
    cells.push_back(cell);
  }
  return cells;
}

}  // namespace

plot learning_curve(std::string_view title, const std::vector<learning_series>& series,
                    const std::vector<stage_border>& borders, std::string_view x_name,
                    axis_scale x_scale) {
  std::vector<drawn_series> shown;
  std::vector<legend_entry> legend;
  value_range x_range(x_scale);
  value_range y_range(axis_scale::linear);
  std::size_t left_out = 0;
  std::size_t without_interval = 0;
  bool is_merged = false;
  for (const learning_series& s : series) {
    drawn_series d = drawn(s, x_scale, left_out);
    for (const curve_point& p : d.points) {
      x_range.add(p.x);
      y_range.add(p.mean_log_speedup);
      if (has_interval(p)) {
        y_range.add(p.low);
        y_range.add(p.high);
      } else {
        ++without_interval;
      }
    }
    is_merged = is_merged || d.merged > 1;
    legend.push_back({s.name, series_class(legend.size())});
    shown.push_back(std::move(d));
  }
  if (x_range.empty()) return no_data(title);
  y_range.add(0);
  y_range.widen(0.05);

  picture chart(width);
  const double top = chart.add_legend(legend, left) + 24;
  const double bottom = top + 270;
  const axis x(x_range, left, right);
  const axis y(y_range, bottom, top);
  chart.add_x_axis(x, top, bottom, x_name);
  chart.add_y_axis(y, left, right, "mean log speed-up; at the right: speed-up");
  add_speedup_labels(chart, y_range, y);
  chart.add(rule_mark({left, y(0)}, {right, y(0)}, "reference"));
  add_borders(chart, borders, x, x_scale, top, bottom);
  for (std::size_t i = 0; i < shown.size(); ++i) add_band(chart, shown[i].points, x, y, i);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    std::vector<position> line;
    for (const curve_point& p : shown[i].points) line.push_back({x(p.x), y(p.mean_log_speedup)});
    if (line.size() == 1) chart.add(dot_mark(line[0], 4, dot_shape::circle, series_class(i), ""));
    if (line.size() > 1) chart.add(line_mark(line, "line " + series_class(i)));
  }
  std::string description = "Mean log speed-up over " + std::string(x_name) + ", " +
                            count_text(shown.size()) + " series, with 95 % intervals." +
                            left_out_note(left_out, "points", "that are not finite or too large");
  if (without_interval > 0)
    description += " Without interval: " + count_text(without_interval) + ".";
  if (is_merged) description += " Neighboring points are merged, their intervals united.";
  description += stages_text(borders, x_scale);
  return {std::move(chart).finish(bottom + 40, title, description),
          learning_table(shown, x_name, x_scale)};
}

plot outcome_shares(std::string_view title, const std::vector<outcome_point>& points,
                    std::string_view x_name) {
  const std::size_t merged = merged_count(points.size(), 80);
  std::size_t left_out = 0;
  const std::vector<outcome_bar> bars = outcome_bars(points, merged, left_out);
  if (bars.empty()) return no_data(title);

  std::vector<legend_entry> legend;
  std::vector<std::string> headers = {std::string(x_name), "samples"};
  std::vector<std::size_t> occurring;  // indices into outcome_names
  for (std::size_t k = 0; k < outcome_names.size(); ++k) {
    const auto has_outcome = [k](const outcome_bar& bar) { return bar.counts[k] > 0; };
    if (std::none_of(bars.begin(), bars.end(), has_outcome)) continue;
    occurring.push_back(k);
    legend.push_back({std::string(outcome_names[k]), "o" + std::to_string(k), true});
    headers.emplace_back(outcome_names[k]);
  }
  picture chart(width);
  const double top = chart.add_legend(legend, left) + 24;
  const double bottom = top + 220;
  value_range percent(axis_scale::linear);
  percent.add(0);
  percent.add(100);
  const axis y(percent, bottom, top);
  chart.add_y_axis(y, left, right, "% of samples");
  const double slot = std::min((right - left) / static_cast<double>(bars.size()), 40.0);
  double free_from = 0;
  std::vector<table_row> rows;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double at = left + slot * static_cast<double>(i);
    table_row row{{bars[i].name, decimal_text(bars[i].total, 0)}, {}};
    double sum = 0;
    for (const std::size_t k : occurring) {
      const double share = bars[i].counts[k] / bars[i].total;
      row.cells.push_back(percent_text(share));
      if (share == 0) continue;
      const double end = y(100 * (sum + share));
      chart.add(bar_mark(
          {at + 0.5, end}, slot - 1, y(100 * sum) - end, "o" + std::to_string(k),
          bars[i].name + ": " + std::string(outcome_names[k]) + " " + percent_text(share)));
      sum += share;
    }
    rows.push_back(std::move(row));
    const double half = static_cast<double>(bars[i].name.size()) * column_px / 2;
    if (at + slot / 2 - half < free_from) continue;
    chart.add(label_mark({at + slot / 2, bottom + 16}, text_anchor::middle, bars[i].name, 16));
    free_from = at + slot / 2 + half + 2 * column_px;
  }
  chart.add(
      label_mark({(left + right) / 2, bottom + 33}, text_anchor::middle, x_name, 60, "axis-name"));
  std::string description = "Shares of outcomes over " + std::string(x_name) + ", from ok at the " +
                            "bottom, as bars of 100 %." +
                            left_out_note(left_out, "bars", "without samples");
  if (merged > 1) description += " Each bar adds up " + count_text(merged) + " points.";
  return {std::move(chart).finish(bottom + 40, title, description), data_table(headers, rows)};
}

plot lanes(std::string_view title, const std::vector<lane_row>& rows, double cell_seconds) {
  constexpr double row_px = 20;
  constexpr double lane_left = 164;
  constexpr std::size_t max_rows = 100;
  const std::size_t shown = std::min(rows.size(), max_rows);
  std::size_t cells = 0;
  for (std::size_t i = 0; i < shown; ++i) cells = std::max(cells, rows[i].busy.size());
  if (cells == 0 || !(cell_seconds > 0) || !std::isfinite(cell_seconds)) return no_data(title);

  const std::size_t merged = merged_count(cells, 120);
  const double bottom = 8 + row_px * static_cast<double>(shown);
  picture chart(width);
  value_range time(axis_scale::seconds);
  time.add(0);
  time.add(static_cast<double>(cells) * cell_seconds);
  if (time.skipped() > 0) return no_data(title);
  const axis x(time, lane_left, right);
  chart.add_x_axis(x, 8, bottom, "time since the start");
  std::size_t unknown = 0;
  std::vector<table_row> table;
  for (std::size_t i = 0; i < shown; ++i) {
    const double y = 8 + row_px * static_cast<double>(i);
    double sum = 0;
    std::size_t known = 0;
    table_row line{{rows[i].name, ""}, {}};
    for (const merged_cell& cell : merged_cells(rows[i].busy, merged)) {
      unknown += cell.end - cell.begin - cell.known;
      sum += cell.busy_sum;
      known += cell.known;
      const double share = cell.known > 0 ? cell.busy_sum / static_cast<double>(cell.known) : 0;
      line.cells.push_back(cell.known > 0 ? decimal_text(100 * share, 0) : "-");
      if (share < 0.05) continue;
      const double from = x(static_cast<double>(cell.begin) * cell_seconds);
      element bar = bar_mark({from, y + 2}, x(static_cast<double>(cell.end) * cell_seconds) - from,
                             row_px - 4, "heat", "");
      chart.add(element("g", {{"fill-opacity", decimal_text(share, 1)}}, {std::move(bar)}));
    }
    const std::string mean = percent_text(known > 0 ? sum / static_cast<double>(known) : NAN);
    line.cells[1] = mean;
    table.push_back(std::move(line));
    chart.add(label_mark({lane_left - 8, y + 14}, text_anchor::end, rows[i].name, 21));
    chart.add(label_mark({width, y + 14}, text_anchor::end, mean, 9));
  }
  std::vector<std::string> headers = {"lane", "mean"};
  for (std::size_t k = 0; k < cells; k += merged) {
    headers.push_back(seconds_label(static_cast<double>(k) * cell_seconds));
  }
  std::string description = "Share of time that each lane is busy, darker where it is busier." +
                            left_out_note(rows.size() - shown, "lanes", "after the first 100") +
                            left_out_note(unknown, "cells", "that are unknown");
  if (merged > 1) description += " Each cell averages " + count_text(merged) + ".";
  return {std::move(chart).finish(bottom + 40, title, description), data_table(headers, table)};
}

element sparkline(std::string_view title, const std::vector<double>& values) {
  picture chart(100);
  std::vector<double> kept;
  value_range range(axis_scale::ratio);
  const std::size_t merged = merged_count(values.size(), 100);
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % merged != merged - 1 && i + 1 != values.size()) continue;
    if (range.add(values[i])) {
      kept.push_back(values[i]);
    } else {
      ++left_out;
    }
  }
  if (kept.empty()) return std::move(chart).finish(24, title, "There are no data.");
  const axis y(range, 21, 3);
  std::vector<position> points;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const double share =
        kept.size() > 1 ? static_cast<double>(i) / static_cast<double>(kept.size() - 1) : 1;
    points.push_back({3 + 94 * share, y(kept[i])});
  }
  chart.add(step_mark(points, "line s0"));
  chart.add(dot_mark(points.back(), 2.5, dot_shape::circle, "s0", ""));
  return std::move(chart).finish(
      24, title,
      "From " + speedup_text(kept.front()) + " to " + speedup_text(kept.back()) + ", at least " +
          speedup_text(range.low()) + ", at most " + speedup_text(range.high()) + "." +
          left_out_note(left_out, "values", "that are not positive and finite"));
}

}  // namespace hone::plots
