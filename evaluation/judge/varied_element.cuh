#pragma once

// The elements of a tensor whose contents are drawn from another distribution than the declared one
// (doc/evaluation.md section 2). The host and the judge's kernels compile this file, so that equal
// seeds give equal changes on both.

#ifdef __CUDACC_RTC__
#define JUDGE_RULE __device__
#else
#include <cmath>
#define JUDGE_RULE inline
#endif

namespace judging {

typedef unsigned long long random_word;

// The change of a tensor's contents. `of` and `how` are values of initializer::kind and of
// distribution, whose first ones elements.cuh repeats.
struct variation {
  random_word seed;
  random_word n;  // number of elements
  // Slices of one dimension: the elements between two of them, their number, and the number of
  // neighbors that are scaled alike.
  random_word stride, extent, block;
  random_word kept;     // of `extent` slices, about as many keep their values in `sparse`
  double a, b;          // of the initializer
  double quiet;         // value of the other slices
  double outlier;       // distance of an outlier
  int lowest, highest;  // exponents of two by which slices are scaled
  int of;
  int how;
  int is_integral;  // a constant of an integer type
  int is_positive;  // outliers are positive
  int is_gentle;    // an `expr` takes the numbers and may expect ordinary ones
};

// Values of initializer::kind and of distribution.
enum varied_kinds {
  vary_normal,
  vary_uniform,
  vary_integers,
  vary_constant,
  vary_permutation,
  vary_coin
};
enum varied_ways {
  way_declared,
  way_shifted,
  way_small,
  way_outliers,
  way_one_high,
  way_one_low,
  way_large,
  way_mixed,
  way_sparse
};

// Returns random bits that belong to a seed, a number and the use that is made of them.
JUDGE_RULE random_word hashed(random_word seed, random_word number, random_word use) {
  random_word z = seed + 0x9e3779b97f4a7c15ull * (number + 1) + 0xd1342543de82ef95ull * use;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Returns a number uniform over [0, 1).
JUDGE_RULE double unit_number(random_word bits) {
  return (double)(bits >> 11) * 1.1102230246251565e-16;
}

JUDGE_RULE random_word slice_of(const variation& v, random_word i) {
  return (i / v.stride) % v.extent;
}

// True of about v.kept slices, and of at least one.
JUDGE_RULE bool is_kept(const variation& v, random_word slice) {
  return slice == hashed(v.seed, 0, 1) % v.extent || hashed(v.seed, slice, 2) % v.extent < v.kept;
}

JUDGE_RULE bool is_single(const variation& v, random_word i) {
  return i == hashed(v.seed, 0, 3) % v.n;
}

// Small tensors have about sixteen outliers, so that most parts of them have one.
JUDGE_RULE bool is_outlier(const variation& v, random_word i) {
  constexpr random_word sparsest = 5000, least = 16;
  const random_word one_in = v.n / least < 2 ? 2 : v.n / least < sparsest ? v.n / least : sparsest;
  return is_single(v, i) || hashed(v.seed, i, 4) % one_in == 0;
}

// Returns the exponent by which the slice's block is scaled.
JUDGE_RULE int exponent_of(const variation& v, random_word slice) {
  const random_word range = (random_word)(v.highest - v.lowest + 1);
  return v.lowest + (int)(hashed(v.seed, slice / v.block, 5) % range);
}

JUDGE_RULE double varied_real(double x, random_word i, const variation& v) {
  switch (v.how) {
    case way_shifted:
      return v.is_gentle ? 2 * x + 1 : 10 * x + 25;
    case way_small:
      return v.is_gentle ? x / 8 : x / 1000;
    case way_large:
      return 100000 * x;
    case way_outliers:
      if (!is_outlier(v, i)) return x;
      return x + (v.is_positive || (hashed(v.seed, i, 6) & 1) != 0 ? v.outlier : -v.outlier);
    case way_one_high:
      return is_single(v, i) ? x + v.outlier : x;
    case way_one_low:
      return !is_single(v, i) ? x : v.is_positive ? x + v.outlier : x - v.outlier;
    case way_mixed:
      return ldexp(x, exponent_of(v, slice_of(v, i)));
    case way_sparse:
      return is_kept(v, slice_of(v, i)) ? x : v.quiet;
    default:
      return x;
  }
}

// True if an element of a constant tensor changes: a single one, those of a few slices, or all.
JUDGE_RULE bool is_changed(const variation& v, random_word i) {
  if (v.how == way_one_high || v.how == way_one_low) return is_single(v, i);
  return v.how != way_sparse || is_kept(v, slice_of(v, i));
}

// A constant becomes numbers that are near it or, with the same sign, within a factor of two.
JUDGE_RULE double varied_constant(double x, random_word i, const variation& v) {
  if (!is_changed(v, i)) return x;
  const double number = 2 * unit_number(hashed(v.seed, i, 7)) - 1;
  const bool is_near = v.how == way_small || (hashed(v.seed, 0, 19) & 1) != 0;
  if (is_near) return x + number * 0.02 * (x != 0 ? fabs(x) : 1);
  return x != 0 ? x * exp2(number) : 2 * number;
}

JUDGE_RULE double varied_coin(double x, random_word i, const variation& v) {
  const random_word eighth = hashed(v.seed, i, 8) % 8;
  switch (v.how) {
    case way_shifted:
      return eighth != 0;
    case way_small:
      return eighth == 0;
    case way_outliers:
      return is_outlier(v, i);
    case way_one_high:
      return is_single(v, i);
    case way_one_low:
      return !is_single(v, i);
    case way_mixed:
      return exponent_of(v, slice_of(v, i)) % 2 == 0 ? x : 1;
    case way_sparse:
      return is_kept(v, slice_of(v, i)) ? x : 0;
    default:
      return x;
  }
}

// Integers stay within their bounds, because they may be indices.
JUDGE_RULE long long varied_integer(long long x, random_word i, const variation& v) {
  const long long low = (long long)v.a, high = (long long)v.b - 1;
  if (v.of == vary_constant) {
    if (!is_changed(v, i)) return x;
    const long long most = (long long)v.a;
    const long long size = most < 0 ? -most : most;
    if (size == 0) return x;
    const long long less = 1 + (long long)(hashed(v.seed, i, 9) % (random_word)size);
    return most < 0 ? most + less : most - less;
  }
  const long long above = x - low;
  switch (v.how) {
    case way_shifted:
      return high - above / 8;
    case way_small:
      return low + above / 8;
    case way_outliers:
      return !is_outlier(v, i) ? x : (hashed(v.seed, i, 6) & 1) != 0 ? high : low;
    case way_one_high:
      return is_single(v, i) ? high : low + above / 2;
    case way_one_low:
      return is_single(v, i) ? low : high - above / 2;
    case way_mixed: {
      const int exponent = exponent_of(v, slice_of(v, i));
      return low + (above >> (exponent < 0 ? -exponent : exponent));
    }
    case way_sparse:
      return is_kept(v, slice_of(v, i)) ? x : low;
    default:
      return x;
  }
}

JUDGE_RULE double varied_number(double x, random_word i, const variation& v) {
  switch (v.of) {
    case vary_normal:
    case vary_uniform:
      return varied_real(x, i, v);
    case vary_constant:
      return v.is_integral ? (double)varied_integer((long long)x, i, v) : varied_constant(x, i, v);
    case vary_coin:
      return varied_coin(x, i, v);
    default:
      return x;
  }
}

// A data file's rows change places and, if they hold real numbers, are scaled. Returns the row
// whose contents row r gets: v.extent rows, v.block has no divisor in common with their number.
JUDGE_RULE random_word source_row(const variation& v, random_word r) {
  return (r * v.block + v.kept) % v.extent;
}
JUDGE_RULE double row_factor(const variation& v, random_word r) {
  return exp2(2 * unit_number(hashed(v.seed, r, 10)) - 1);
}

}  // namespace judging
