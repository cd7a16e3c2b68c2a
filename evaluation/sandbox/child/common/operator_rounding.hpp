#pragma once

#include <string_view>

namespace hone {

// The rounding errors that correct programs make where a reference calls an ATen operator. A
// program may use another algorithm than PyTorch: another order of summation, another formula for
// an activation, a fused kernel. rounding_noise.cpp computes the amplitude of the error from a
// rule. u is the unit roundoff of the result's type, x the first argument, y the result.
enum class rounding_kind {
  exact,        // copies, selects or compares values, or only returns a view
  relative,     // 2 u |y|
  unit,         // u (c0 + cx |x| + cy |y|)
  logarithmic,  // u |y| (2 + |ln |y||), for exp and pow: the exponent is rounded as well
  // Sums and products of elements. The magnitudes of the terms count that the polynomial has when
  // it is expanded, because programs distribute products over sums.
  additive,
  multiplicative,
  product,        // of matrices or vectors: accumulation of a dimension
  convolution,    // the same, and the errors of Winograd's and Fourier's algorithms
  sum,            // accumulation of the reduced elements
  cumulative,     // running sums, which may be computed from either end
  running_power,  // running products
  norm,           // accumulation, relative to the result
  distance,       // distances, which may be computed from norms and products
  softmax,
  log_softmax,
  backward_stable,  // exact for arguments that differ by rounding: linear algebra and transforms
  // Computed by the textbook formula from sums and sums of squares:
  layer_norm,
  group_norm,
  batch_norm,
  variance,
  attention,   // computed by its definition
  recurrent,   // computed without cuDNN, step by step
  conversion,  // to another type
  // Discontinuous operators. Their results are decisions (rounding_noise.hpp).
  decision,   // all results are decisions
  selection,  // the second result holds the indices of the first
  quotient,   // x minus a decided multiple of the second argument
  cutoff,     // x, or a constant where a decision says so
};

struct operator_rounding {
  rounding_kind kind = rounding_kind::relative;
  double c0 = 0;
  double cx = 0;
  double cy = 0;
};

// Returns the rule of an operator, by its name in ATen without namespace and overload. Operators
// that the table does not list round once: `relative`. An operator in place has the same rule.
const operator_rounding& rounding_of(std::string_view name);

}  // namespace hone
