#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/program/tensors.hpp"

namespace judging {
struct measures;
struct output_scale;
}  // namespace judging

namespace hone {

// The outputs of a reference for a call, by run (evidence.hpp). Entries have the same number of
// outputs and the same shapes. A study may leave out all but the first.
struct expected_outputs {
  value_set own;                              // in its own types
  std::optional<value_set> wide;              // in float64
  std::optional<value_set> settled;           // in float64 with the decisions of `own`
  std::vector<value_set> noisy;               // with noise and the decisions of `own`
  std::vector<value_set> alternatives;        // with noise and their own decisions
  bool takes_decisions = true;                // false: a study has found none
  distribution how = distribution::declared;  // of the call's inputs
  std::vector<double> known_errors;           // by output: reference_facts::typical_error()
};

// The result of comparing outputs. Ratios are measured error over allowed error; a ratio of at most
// 1 is agreement.
struct agreement {
  double worst_element = 0;  // the largest ratio of an element
  double rms = 0;            // ratio of the root mean square over an output, the largest of them
  // The largest error that rounding allows for a typical element, as a share of a typical element,
  // of the output of which this is largest.
  double allowed_share = 0;
  // The error that rounding explains for a typical element, as a share of a typical element, by
  // output. 0: not known, or an output of an exact type.
  std::vector<double> typical_errors;
  // Describes the first disagreement; nullopt if the outputs agree.
  std::optional<std::string> problem;
  // The number, a shape or a type of the outputs is wrong.
  bool is_malformed = false;
};

// The unit roundoff of a floating-point type, and the error by which a result next to zero may be
// flushed or rounded: the least normal number of types that GPUs may flush, else the least number.
struct type_limits {
  double unit = 0;
  double least = 0;
};
type_limits limits_of(dtype type);

// Sums and extremes over one floating-point output, measured on the host or on a GPU. Errors are
// ratios to JUDGE_MOST_OF_AN_ELEMENT times the error that rounding explains, beyond the task's
// tolerance (element_rule.cuh).
struct output_errors {
  // Index of the first element that is NaN, infinite or finite where that is not right.
  std::optional<std::size_t> first_bad;
  double worst = 0;
  std::size_t worst_at = 0;
  double squares = 0;  // sum of the ratios' squares
  std::uint64_t count = 0;
  double typical_error = 0;  // that rounding explains
  double typical_value = 0;  // magnitude of an expected element
};

// Return the scale of an output's limits and its errors from the sums that the host or a kernel has
// made over its elements: `sizes` over the expected ones, `m` over the candidate's. `known_error`:
// the typical error of an output for such contents, as a share of a typical element.
judging::output_scale scale_of(const judging::measures& sizes, tolerance allowed,
                               double known_error);
output_errors errors_of(const judging::measures& sizes, const judging::measures& m);

// One element of the actual and of the expected output, for messages.
struct element_text {
  double actual = 0;
  double expected = 0;
  bool is_poison = false;  // the element was never written
};

// Applies the acceptance rule to measured errors. `look` returns the element that a message names.
agreement conclude(const output_errors& errors, const tensor_layout& layout,
                   const std::function<element_text(std::size_t)>& look);
// Applies the rule for exact types; `first_wrong` is nullopt if no element is wrong.
agreement conclude_exact(std::optional<std::size_t> first_wrong, const tensor_layout& layout,
                         const std::function<element_text(std::size_t)>& look);

// Compares output `index` (evaluation.md section 2, point 5). `allowed` is the task's tolerance for
// the output's type, in addition to rounding.
agreement compare_output(const tensor_value& actual, const expected_outputs& expected,
                         std::size_t index, tolerance allowed = {});

// Compares count, shapes and types first, then every output by `compare`. The first problem names
// its output.
agreement compare_all(const std::vector<tensor_layout>& given,
                      const std::vector<tensor_layout>& expected,
                      const std::function<agreement(std::size_t)>& compare);
// Compares outputs in host memory.
agreement compare_outputs(const value_set& actual, const expected_outputs& expected, const task& t);

}  // namespace hone
