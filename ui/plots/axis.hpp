#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hone::plots {

enum class axis_scale {
  linear,
  whole,    // counts: ticks at whole numbers, "12k"
  ratio,    // speed-ups: logarithmic, "1/2x"
  seconds,  // times since a start: "5 min"
};

// Returns whether a number can be drawn on a scale: it is finite, of moderate size (at most 1e15,
// for ratios from 1e-12 to 1e12) and, for ratios, positive.
bool is_drawable(axis_scale scale, double value);

// The range of the drawable values of a scale, and how many were not.
class value_range {
 public:
  explicit value_range(axis_scale scale) : scale_(scale) {}

  // Includes a value and returns true if it is drawable, else counts it as skipped.
  bool add(double value);
  // Widens the range at both ends, by a share of its width.
  void widen(double share);

  axis_scale scale() const { return scale_; }
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }
  std::size_t skipped() const { return skipped_; }

 private:
  axis_scale scale_;
  double low_ = 1;
  double high_ = 0;
  std::size_t skipped_ = 0;
};

struct axis_tick {
  double value;
  std::string label;
};

// A mapping from values to pixels of a picture. Immutable.
class axis {
 public:
  // Maps the range to the pixels from `first` to `last`, which may be in either order. An empty
  // range becomes one around 1, a single value gets room around it.
  axis(const value_range& range, double first, double last);

  // Returns the pixel of a drawable value. Values outside the range are at its ends.
  double operator()(double value) const;

  double first() const { return first_; }
  double last() const { return last_; }
  // Returns between 1 and about `max_ticks` ticks at round values inside the range, in its order.
  // A ratio has powers of 2 or 10, or round steps if its range is narrow.
  std::vector<axis_tick> ticks(std::size_t max_ticks) const;

 private:
  axis_scale scale_;
  double low_;  // in scaled values: the binary logarithm of ratios
  double high_;
  double first_;
  double last_;
};

// Returns "4x" for 4, "1/2x" for 0.5 and "1.2x" for a ratio that is no power of 2.
std::string ratio_label(double ratio);

// Returns "0 s", "90 s", "5 min", "2 h", "3 d".
std::string seconds_label(double seconds);

}  // namespace hone::plots
