#pragma once

// The rule by which the judge accepts an element of a floating-point output (doc/evaluation.md
// section 2). The host and the judge's kernels compile this file.

#ifdef __CUDACC_RTC__
#define JUDGE_RULE __device__
#else
#include <cmath>
#define JUDGE_RULE inline
#endif

// An error beyond the task's tolerance may be this many times what rounding explains, for one
// element, and for the root mean square over all n of an output: MAX_RMS + MORE_RMS_OF_FEW /
// sqrt(n).
#define JUDGE_MOST_OF_AN_ELEMENT 16.0
#define JUDGE_MOST_RMS 3.0
#define JUDGE_MORE_RMS_OF_FEW 13.0

// Maximum number of the reference's runs with noise, and of its runs that take their own decisions,
// that an output is compared with.
#define JUDGE_MOST_NOISY 8
#define JUDGE_MOST_ALTERNATIVES 12

namespace judging {

JUDGE_RULE bool is_number(double x) { return x - x == 0; }
JUDGE_RULE bool same_number(double a, double b) { return a == b || (a != a && b != b); }

// Returns the larger one of `spread` and the distance of a run with noise from `own`, the run in
// the reference's types.
JUDGE_RULE double wider_spread(double spread, double own, double noisy) {
  if (!is_number(own) || !is_number(noisy)) return spread;
  const double distance = fabs(noisy - own);
  return distance > spread ? distance : spread;
}

// Returns the error that rounding explains at an element: the larger one of the spread of runs with
// noise and of the error of `own` against `exact`, the float64 run with the same decisions, and one
// rounding of the result. `unit`: the type's unit roundoff. `least`: the error of a result next to
// zero.
JUDGE_RULE double rounding_error(double spread, double own, double exact, double unit,
                                 double least) {
  const double error = wider_spread(spread, own, exact);
  return error + (is_number(exact) ? unit * fabs(exact) : 0) + least;
}

// Where an element is off by more than rounding explains at itself, the median over this many
// elements around it counts if it is larger: of billions of elements, some have small errors in
// every run by chance.
#define JUDGE_NEIGHBORS 41

// Returns true if an element whose error is so many times its limit may have that limit by chance.
JUDGE_RULE bool may_be_chance(double ratio) { return ratio > 1 && ratio < 256; }

// Returns the first of the neighbors of element i of n.
JUDGE_RULE unsigned long long first_neighbor(unsigned long long i, unsigned long long n) {
  const unsigned long long before = i < JUDGE_NEIGHBORS / 2 ? i : JUDGE_NEIGHBORS / 2;
  return n < JUDGE_NEIGHBORS                ? 0
         : i - before + JUDGE_NEIGHBORS > n ? n - JUDGE_NEIGHBORS
                                            : i - before;
}

JUDGE_RULE void sort_numbers(double* numbers, int count) {
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && numbers[j] < numbers[j - 1]; --j) {
      const double higher = numbers[j - 1];
      numbers[j - 1] = numbers[j];
      numbers[j] = higher;
    }
  }
}

// Returns the median of `count` numbers, of which there is at least one, and sorts them.
JUDGE_RULE double median_of(double* numbers, int count) {
  sort_numbers(numbers, count);
  return numbers[count / 2];
}

// The sizes of an output that its elements' limits depend on, and the task's tolerance.
struct output_scale {
  double typical;        // geometric mean of rounding_error()
  double rms;            // of the expected elements
  double max_tolerance;  // see max_tolerance_of()
  double rtol, atol;
};

// Returns the most that a task's tolerance may add to the limit of an element: half of the standard
// deviation of the expected elements, so that no constant passes for them. A single element has
// none. `sum`, `squares`: over the `finite` expected elements that are finite.
JUDGE_RULE double max_tolerance_of(double sum, double squares, double finite) {
  if (finite < 2) return 1e300;
  const double mean = sum / finite;
  const double variance = squares / finite - mean * mean;
  return variance > 0 ? sqrt(variance) / 2 : 0;
}

// The error that is allowed at an element: for rounding, and the task's tolerance.
struct element_limit {
  double rounding, tolerance;
};

// Returns the limit of an element whose expected value is `exact`.
JUDGE_RULE element_limit limit_of(double error, double exact, const output_scale& of) {
  const double tolerance = of.atol * of.rms + (is_number(exact) ? of.rtol * fabs(exact) : 0);
  return {JUDGE_MOST_OF_AN_ELEMENT * (error > of.typical ? error : of.typical),
          tolerance < of.max_tolerance ? tolerance : of.max_tolerance};
}

JUDGE_RULE double allowed_by(const element_limit& limit) {
  return limit.rounding + limit.tolerance;
}

// Returns the error beyond the tolerance, as a multiple of the error allowed for rounding.
JUDGE_RULE double ratio_of(double distance, const element_limit& limit) {
  return distance > limit.tolerance ? (distance - limit.tolerance) / limit.rounding : 0;
}

// Returns the distance of `x` from the nearest of the reference's results, of which there is at
// least one, and sorts them. Results that are further apart than `limit` follow from different
// decisions. Of one decision there are two, and nothing between them is right. Where there are more
// than two, many decisions add up, and everything between the smallest and the largest result is
// right, and beyond them by as much again.
JUDGE_RULE double distance_from_results(double x, double* results, int count, double limit) {
  sort_numbers(results, count);
  double nearest = fabs(x - results[0]);
  int groups = 1;
  for (int i = 1; i < count; ++i) {
    const double distance = fabs(x - results[i]);
    if (distance < nearest) nearest = distance;
    if (results[i] - results[i - 1] > limit) ++groups;
  }
  const double range = results[count - 1] - results[0];
  const bool is_between = x >= results[0] - range && x <= results[count - 1] + range;
  return groups > 2 && is_between ? 0 : nearest;
}

// Returns true if `x`, which is no number or whose expected value `exact` is none, is right as far
// as these two runs show. `limit`: the error that is allowed where only the float64 run is no
// number.
JUDGE_RULE bool is_right_special(double x, double own, double exact, double limit) {
  if (same_number(x, exact) || same_number(x, own)) return true;
  return is_number(x) && !is_number(exact) && is_number(own) && fabs(x - own) <= limit;
}

// Sums over the elements of an output. The host and the judge's kernels add up parts of it.
struct measures {
  double sum = 0, squares = 0;    // sums of the expected, finite elements and of their squares
  double errors = 0, values = 0;  // sums of logarithms: of rounding errors and of magnitudes
  double worst = 0;               // largest ratio_of() an element
  double ratios = 0;              // sum of the squares of all ratio_of()
  unsigned long long worst_at = ~0ull;  // index of the worst element
  unsigned long long finite = 0;        // number of finite expected elements
  unsigned long long error_count = 0, value_count = 0, count = 0;  // terms of the last three sums
  unsigned long long first_bad = ~0ull;  // the first element whose NaN, infinity or exact value is
                                         // wrong; ~0: none
};

JUDGE_RULE void add(measures& to, const measures& m) {
  to.sum += m.sum;
  to.squares += m.squares;
  to.errors += m.errors;
  to.values += m.values;
  if (m.worst > to.worst || (m.worst == to.worst && m.worst_at < to.worst_at)) {
    to.worst = m.worst;
    to.worst_at = m.worst_at;
  }
  to.ratios += m.ratios;
  to.finite += m.finite;
  to.error_count += m.error_count;
  to.value_count += m.value_count;
  to.count += m.count;
  if (m.first_bad < to.first_bad) to.first_bad = m.first_bad;
}

}  // namespace judging
