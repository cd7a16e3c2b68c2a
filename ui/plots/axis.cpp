#include "ui/plots/axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ui/html/numbers.hpp"

namespace hone::plots {
namespace {

double scaled(axis_scale scale, double value) {
  return scale == axis_scale::ratio ? std::log2(value) : value;
}

// Returns the smallest round step of which at most `max_ticks` fit into a width.
double round_step(double width, std::size_t max_ticks) {
  const double raw = width / static_cast<double>(std::max<std::size_t>(max_ticks, 1));
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

double round_seconds(double width, std::size_t max_ticks) {
  constexpr std::array steps = {1.,   2.,   5.,    10.,   15.,   30.,    60.,    120.,   300.,
                                600., 900., 1800., 3600., 7200., 14400., 21600., 43200., 86400.};
  for (const double step : steps) {
    if (width / step <= static_cast<double>(max_ticks)) return step;
  }
  return std::ceil(round_step(width / 86400, max_ticks)) * 86400;
}

std::string step_label(double value, double step) {
  if (std::abs(value) >= 1e5 || step < 1e-4) return number_text(value);
  return decimal_text(value, step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 4);
}

}  // namespace

bool is_drawable(axis_scale scale, double value) {
  if (scale == axis_scale::ratio) return value >= 1e-12 && value <= 1e12;
  return std::abs(value) <= 1e15;
}

bool value_range::add(double value) {
  if (!is_drawable(scale_, value)) {
    ++skipped_;
    return false;
  }
  const bool is_first = empty();
  low_ = is_first ? value : std::min(low_, value);
  high_ = is_first ? value : std::max(high_, value);
  return true;
}

void value_range::widen(double share) {
  if (empty()) return;
  if (scale_ == axis_scale::ratio) {
    const double factor = std::pow(high_ / low_, share);
    low_ /= factor;
    high_ *= factor;
  } else {
    const double margin = (high_ - low_) * share;
    low_ -= margin;
    high_ += margin;
  }
}

axis::axis(const value_range& range, double first, double last)
    : scale_(range.scale()),
      low_(range.empty() ? scaled(scale_, 1) : scaled(scale_, range.low())),
      high_(range.empty() ? low_ : scaled(scale_, range.high())),
      first_(first),
      last_(last) {
  // A width that is too small for the numbers is no width.
  const double min_width = std::max({std::abs(low_), std::abs(high_), 1.0}) * 1e-9;
  if (high_ - low_ < min_width) {
    const double room = scale_ == axis_scale::ratio ? 0.5 : std::max(std::abs(low_) * 0.1, 0.5);
    low_ -= room;
    high_ += room;
  }
}

double axis::operator()(double value) const {
  const double share = (scaled(scale_, value) - low_) / (high_ - low_);
  return first_ + std::clamp(share, 0.0, 1.0) * (last_ - first_);
}

std::vector<axis_tick> axis::ticks(std::size_t max_ticks) const {
  double low = low_;
  double high = high_;
  double step = 1;
  const bool is_narrow_ratio = scale_ == axis_scale::ratio && high_ - low_ < 1.5;
  const bool is_wide_ratio = scale_ == axis_scale::ratio && high_ - low_ > 12;
  const double unit = is_wide_ratio ? std::log2(10) : 1;  // of a scaled value
  if (is_narrow_ratio) {
    low = std::exp2(low_);
    high = std::exp2(high_);
    step = round_step(high - low, max_ticks);
  } else if (scale_ == axis_scale::seconds) {
    step = round_seconds(high - low, max_ticks);
  } else if (scale_ == axis_scale::linear) {
    step = round_step(high - low, max_ticks);
  } else {
    low /= unit;
    high /= unit;
    step = std::ceil(std::max(1.0, round_step(high - low, max_ticks)));
  }
  std::vector<axis_tick> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (double i = first; i * step <= high + step * 1e-9 && ticks.size() <= max_ticks + 1; ++i) {
    const double value = i * step;
    if (is_narrow_ratio) {
      ticks.push_back({value, step_label(value, step) + "x"});
    } else if (scale_ == axis_scale::ratio) {
      const double ratio = std::exp2(value * unit);
      ticks.push_back({ratio, ratio_label(ratio)});
    } else if (scale_ == axis_scale::seconds) {
      ticks.push_back({value, seconds_label(value)});
    } else if (scale_ == axis_scale::whole) {
      ticks.push_back({value, compact_text(value)});
    } else {
      ticks.push_back({value, step_label(value, step)});
    }
  }
  if (ticks.empty()) {
    const double middle = (low_ + high_) / 2;
    const double value = scale_ == axis_scale::ratio ? std::exp2(middle) : middle;
    ticks.push_back({value, number_text(value)});
  }
  return ticks;
}

std::string ratio_label(double ratio) {
  const auto whole = [](double value) {
    return value < 1e5 ? decimal_text(value, 0) : number_text(value);
  };
  const auto is_whole = [](double value) {
    return std::abs(value - std::round(value)) < 1e-9 * value;
  };
  if (ratio >= 1 && is_whole(ratio)) return whole(ratio) + "x";
  if (ratio < 1 && is_whole(1 / ratio)) return "1/" + whole(1 / ratio) + "x";
  return number_text(ratio) + "x";
}

std::string seconds_label(double seconds) {
  const double size = std::abs(seconds);
  const auto in = [&](double unit, const char* name) {
    const double value = seconds / unit;
    const bool is_whole = std::abs(value - std::round(value)) < 1e-6;
    return decimal_text(value, is_whole ? 0 : 1) + name;
  };
  if (size < 120) return in(1, " s");
  if (size < 7200) return in(60, " min");
  if (size < 172800) return in(3600, " h");
  return in(86400, " d");
}

}  // namespace hone::plots
