#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/program/tensors.hpp"

namespace hone {

// Lower bound of the norms that errors are compared with, so that an all-zero expected output
// allows no error.
inline constexpr double tiny = 1e-30;

// The outputs that a reference computes for a call.
struct expected_outputs {
  value_set own;                  // in its own types
  std::optional<value_set> wide;  // in float64; the same count and shapes, floating types widened
};

// The result of comparing outputs. Ratios are measured error over allowed error; a ratio of at most
// 1 is agreement.
struct agreement {
  double worst_element = 0;  // the largest ratio of an element
  double relative_l2 = 0;    // the error itself, not a ratio
  // Error of the reference in its own types, over the error that the tolerance alone allows.
  double reference_inexactness = 0;
  // Describes the first disagreement; nullopt if the outputs agree.
  std::optional<std::string> problem;
  // True if the tolerance accepts the output and only a rule against constant outputs refuses it.
  bool only_by_tolerance = false;
  // True if each output would agree if none of its elements counted as missed.
  bool only_by_misses = false;
};

// The errors of one floating-point output, measured on the host or on a GPU.
struct output_errors {
  struct measures {
    double worst_ratio = 0;  // largest error of an element over the error allowed for that element
    double relative_l2 = 0;
  };
  // Index of the first element that is NaN, infinite or finite where that is not expected.
  std::optional<std::size_t> first_bad;
  measures given;            // of the candidate
  std::size_t worst_at = 0;  // index of the candidate's worst element
  measures own;              // of the reference in its own type against its float64 run
  bool is_constant = false;
  bool is_expected_constant = false;
  // Numbers of elements that the candidate and the reference in its own type have missed
  // (miss_limits).
  std::uint64_t missed = 0;
  std::uint64_t own_missed = 0;
  // Sums of squares.
  double given_error = 0;         // of the differences
  double own_error = 0;           // of the reference's own differences
  double expected_norm = 0;       // of the expected elements
  double expected_deviation = 0;  // of the expected elements minus their mean
};

// Says which elements of an output a program has missed. What the tolerance allows is a share of
// the whole output's size, and where few elements are large it would allow zeros for all others. An
// element next to `noise` cannot be missed, since honest formulas differ there: a sigmoid computed
// by tanh is exact to a rounding of 1, however small the sigmoid is.
struct miss_limits {
  double noise = 0;
  double share =
      0;  // an element is missed if it is off by more than noise and this share of itself
};

// `typical`: the typical magnitude of the expected output's elements: the square of the mean of
// their magnitudes' roots, which a heavy tail hardly moves. `type`: of the output.
miss_limits miss_limits_of(dtype type, tolerance allowed, double typical);

// One element of the actual and of the expected output, for messages.
struct element_text {
  double actual = 0;
  double expected = 0;
  bool is_poison = false;  // the element was never written
};

// Returns the error of the reference's run in its own type against its float64 run, over the error
// that the tolerance allows. Above 1, the order of operations decides the result, and correct
// programs may be refused.
double inexactness_of_reference(const output_errors& errors, tolerance allowed);

// Applies the acceptance rule to measured errors. `look` returns the element that a message names.
agreement conclude(const output_errors& errors, const tensor_layout& layout, tolerance allowed,
                   const std::function<element_text(std::size_t)>& look);
// Applies the rule for exact types; `first_wrong` is nullopt if no element is wrong.
agreement conclude_exact(std::optional<std::size_t> first_wrong, const tensor_layout& layout,
                         const std::function<element_text(std::size_t)>& look);

// Compares one output (evaluation.md section 2, point 5). `allowed` is the tolerance for the
// output's type; exact types ignore it. `wide` is null if there is no float64 run.
agreement compare_output(const tensor_value& actual, const tensor_value& own,
                         const tensor_value* wide, tolerance allowed);

// Compares count, shapes and types first, then every output by `compare`. The first problem names
// its output.
agreement compare_all(const std::vector<tensor_layout>& given,
                      const std::vector<tensor_layout>& expected,
                      const std::function<agreement(std::size_t)>& compare);
// Compares outputs in host memory.
agreement compare_outputs(const value_set& actual, const expected_outputs& expected, const task& t);

}  // namespace hone
