#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ui/plots/axis.hpp"
#include "ui/plots/plot.hpp"

// Plots of a run over its steps or its time. Numbers that cannot be drawn (see is_drawable) are
// left out and counted in the description; plots without any others are no_data. The functions are
// pure and thread-safe, and the size of the pictures does not depend on the number of points.
namespace hone::plots {

struct curve_point {
  double x;
  double mean_log_speedup;  // natural logarithm
  double low;               // 95 % interval; NaN if there is none
  double high;
};

struct learning_series {
  std::string name;
  std::vector<curve_point> points;  // in the order of x
};

struct stage_border {
  double x;
  std::string stage;  // which begins here
};

// Returns the mean log speed-up over x, the version, the step or the tokens (whole) or the time
// (seconds), of one or more runs. Above 400 points of a series, neighbors are merged: their means
// are averaged, their intervals united.
plot learning_curve(std::string_view title, const std::vector<learning_series>& series,
                    const std::vector<stage_border>& borders, std::string_view x_name,
                    axis_scale x_scale = axis_scale::whole);

// The outcomes of a sample in their fixed order; their values are those of schema::Outcome.
inline constexpr std::array<std::string_view, 11> outcome_names = {
    "ok",      "unparsable",   "rejected", "compile_error", "launch_error",  "crash",
    "timeout", "wrong_result", "cheating", "unstable",      "infrastructure"};

struct outcome_point {
  double x;  // step
  std::array<std::uint64_t, outcome_names.size()> counts{};
};

// Returns the shares of outcomes by step, as one bar of 100 % per point. Above 80 points, neighbors
// are added up.
plot outcome_shares(std::string_view title, const std::vector<outcome_point>& points,
                    std::string_view x_name);

struct lane_row {
  std::string name;
  std::vector<double> busy;  // share 0..1 in each cell of time; NaN where unknown
};

// Returns one lane per row, darker where it is busier. Draws at most 100 rows; above 120 cells,
// neighbors are averaged.
plot lanes(std::string_view title, const std::vector<lane_row>& rows, double cell_seconds);

// Returns a small picture of positive values over time, on a logarithmic scale, for a cell of a
// table. Above 100 values, it shows the last of each group of neighbors.
html::element sparkline(std::string_view title, const std::vector<double>& values);

}  // namespace hone::plots
