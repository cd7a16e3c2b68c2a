#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hone {

// Returns the median; of an even count, the mean of the middle two. Throws std::invalid_argument if
// `values` is empty.
double median(std::span<const double> values);

struct interval {
  double low = 0;
  double high = 0;
};

// Returns the distribution-free 95 % interval of the median: order statistics whose ranks follow
// from the binomial distribution (Conover, Practical Nonparametric Statistics, section 3.2). With
// fewer than six values no ranks reach 95 %, and the result is the whole range. Throws
// std::invalid_argument if `values` is empty.
interval median_interval(std::span<const double> values);

// Rounds to two decimals toward 1: 1.237 -> 1.23, 0.874 -> 0.88. A value within rounding error of
// two decimals is kept.
double round_toward_one(double score);

inline constexpr std::size_t bucket_count = 7;
// Deals the values out in turn to seven buckets and returns the median of each non-empty one.
std::vector<double> bucket_medians(std::span<const double> values);

// The speed-up of one timed case.
struct ratio_summary {
  std::vector<double> buckets;  // speed-up of each bucket
  double speedup = 1;           // median of the buckets
  interval range;               // 95 % interval of the median speed-up
};

// Returns half of the interval's width relative to its middle: 0.05 is plus or minus five per cent.
double relative_half_width(const interval& range);

// `log_ratios`: ln(reference / candidate), one per round.
ratio_summary summarize(std::span<const double> log_ratios);

// The score of one or more timed cases: their geometric mean, rounded toward 1, and exactly 1 if
// the combined interval contains 1.
struct scored_ratio {
  double score = 1;
  double raw = 1;  // the geometric mean itself
  interval range;
};
scored_ratio combine(std::span<const ratio_summary> cases);

}  // namespace hone
