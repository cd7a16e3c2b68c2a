#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ui/html/element.hpp"
#include "ui/plots/plot.hpp"

// Plots of speed-ups, on logarithmic axes. Speed-ups that cannot be drawn (see is_drawable) are
// left out and counted in the description; plots without any others are no_data. Plots by rows draw
// the first 400 and list all in the table. The functions are pure and thread-safe.
namespace hone::plots {

struct baseline_speedup {
  std::string name;
  double speedup;
};

struct task_speedups {
  std::string task;
  double speedup;                    // the headline
  std::vector<double> measurements;  // speed-ups
  std::vector<baseline_speedup> baselines;
  std::optional<html::url> link;
};

// Returns one row per task in the order given: the headline, the measurements as smaller dots and
// the baselines as ticks.
plot speedups_by_task(std::string_view title, const std::vector<task_speedups>& rows);

struct measurement_row {
  std::string name;  // such as time and device
  double speedup;
  double low;  // 95 % interval of this measurement
  double high;
};

// Returns one row per measurement with its interval, and the line of their median.
plot measurements(std::string_view title, const std::vector<measurement_row>& rows);

enum class variant_origin { generated, copied, corpus };

struct variant_point {
  double version;
  double speedup;       // of an ok variant
  std::size_t outcome;  // index into outcome_names; 0: ok
  variant_origin origin;
  std::string name;
  std::optional<html::url> link;
};

// Returns speed-up over version, with the best so far as a step line and a lane for each outcome
// that failed. Above 2,000 points, cells show their numbers, best variants and links.
plot variant_scatter(std::string_view title, const std::vector<variant_point>& points);

struct speedup_bucket {
  double low;
  double high;
  std::uint64_t count;
};

// Returns the numbers of variants by buckets of speed-up.
plot histogram(std::string_view title, const std::vector<speedup_bucket>& buckets);

}  // namespace hone::plots
