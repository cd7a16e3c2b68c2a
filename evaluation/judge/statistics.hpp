#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hone {

// Median of any numbers; the mean of the middle two where their count is even. Throws
// std::invalid_argument when empty.
double median(std::span<const double> values);

struct interval {
  double low = 0;
  double high = 0;
};

// Distribution-free 95 % interval of the median: order statistics whose ranks the binomial
// distribution gives (Conover, Practical Nonparametric Statistics, section 3.2). With fewer than
// six values no ranks reach 95 %: the whole range.
interval median_interval(std::span<const double> values);

// Toward 1 at two decimals: 1.237 -> 1.23, 0.874 -> 0.88. What is within rounding error of two
// decimals stays.
double round_toward_one(double score);

inline constexpr std::size_t bucket_count = 7;
// The values dealt out in turn to seven buckets; the median of each non-empty one.
std::vector<double> bucket_medians(std::span<const double> values);

// What paired rounds say: `log_ratios` are ln(reference / candidate), one a round.
struct ratio_summary {
  std::vector<double> buckets;  // speed-up of each bucket
  double speedup = 1;           // median of the buckets
  interval range;               // 95 % interval of the median speed-up
};

// Half of the interval's width, relative to its middle: 0.05 is "plus or minus five per cent".
double relative_half_width(const interval& range);

ratio_summary summarise(std::span<const double> log_ratios);

// The score of one or more timed cases: geometric mean, rounded toward 1; 1 where the combined
// interval contains 1.
struct scored_ratio {
  double score = 1;
  double raw = 1;
  interval range;
};
scored_ratio combine(std::span<const ratio_summary> cases);

// When to stop measuring. Constants belong to the kind of device.
struct timing_rules {
  double target_width = 0.05;    // relative half-width of the interval that is narrow enough
  double doubling_width = 0.08;  // beyond this the budget is doubled
  double unstable_width =
      0.15;  // beyond this, after the doubled budget, the measurement is unstable
  double unstable_variance =
      1;  // of the buckets' speed-ups, whatever the budget: beyond this it is as well, on a GPU
  double budget_ns = 0.25e9;  // of clocked time; doubled once
  std::size_t min_rounds = 7;
  double equal_log_ratio = 0;   // what equal programs differ by, ln
  double equal_half_width = 0;  // and how well that is known
  double near_equal = 0;        // what differs from that by less, ln, must do so for as many rounds
  std::size_t near_equal_rounds =
      0;                        // as this, within the budget: chance leans to 1, not away from it
  double hopeless_ratio = 0.2;  // a candidate over five times slower needs no precision
  std::size_t hopeless_rounds = 3;
  double batch_ns = 6e6;  // a timed batch takes at least this
  double lead_in_ns =
      2e6;  // uncounted calls before each batch: other processes have run in between
  double warm_up_ns = 15e6;
  double reverify_agreement = 0.25;
  double patience_ns =
      60e9;  // that the timing of a case may take, beside five times what its reference takes
};

enum class timing_decision { go_on, settled, hopeless, unstable };
timing_decision decide(const timing_rules& rules, std::span<const double> log_ratios,
                       double clocked_ns);

}  // namespace hone
