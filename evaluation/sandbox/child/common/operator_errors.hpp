#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "evaluation/sandbox/child/common/operator_rounding.hpp"

namespace hone {

// The amplitude of an operator's rounding error, by element of a result: `relative` times the
// element plus `absolute`, which is undefined or can be broadcast to the result's shape.
struct operator_error {
  double relative = 0;
  at::Tensor absolute{};
  // Of a polynomial: the sum of the magnitudes of its terms.
  at::Tensor magnitude{};
};

// A call of an operator and one of its results.
struct finished_operator {
  std::string_view name;  // with the namespace
  const operator_rounding& rule;
  const std::vector<c10::IValue>& inputs;  // as they were before the call
  const at::Tensor& y;                     // the result
  // Calls the operator with other arguments and returns its results.
  const std::function<std::vector<c10::IValue>(std::vector<c10::IValue>)>& repeat;
  bool tf32;
  bool has_equal_terms;
  bool counts_zeros;              // terms that are zero do not count
  bool is_one_over_one_plus_exp;  // y is a sigmoid that is written out
  // Returns the sum of the magnitudes of the terms of an argument, or an undefined tensor if the
  // argument is no polynomial.
  const std::function<at::Tensor(const at::Tensor&)>& expanded;
};

// Returns the error that a correct program may make instead of this call. Must be called without
// noise. Sums: naive accumulation of n terms t in the type's precision has the error
//   u / 2 sqrt(n / 3 S^2 + n / 6 Q + 5/4 M^2),  S = sum t,  M = sum |t|,  Q = sum t^2,
// which is the root of the mean square over random orders of the terms, if each addition rounds by
// at most u of the partial sum. n is at most `max_accumulated`: nobody adds up more terms in a
// row. Where many terms are equal, so are their errors: u / 8 n |S| is added.
operator_error error_of(const finished_operator& call);
inline constexpr double max_accumulated = 262144;
// The magnitudes of the terms of polynomials with more elements are not kept, to save memory.
inline constexpr std::int64_t max_expanded = std::int64_t{1} << 28;

// Returns a copy of an argument, changed by the rounding of its largest elements.
at::Tensor perturbed(const at::Tensor& argument, double amplitude);

}  // namespace hone
