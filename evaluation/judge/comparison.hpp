#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/devices/values.hpp"

namespace hone {

inline constexpr double tiny = 1e-30;  // keeps an all-zero expectation from allowing anything

// What a reference says that a call's outputs are: in float64 where it can be run so, and in its
// own types.
struct expected_outputs {
  value_set own;
  std::optional<value_set> wide;  // same count and shapes; floating types widened
};

// Agreement of one output. Ratios are measured error over allowed error: at most 1 is agreement.
struct agreement {
  double worst_element = 0;
  double relative_l2 = 0;  // the error itself, not a ratio
  double reference_inexactness =
      0;  // of the reference in its own types, over what the tolerance alone allows
  std::optional<std::string> problem;
  bool only_by_tolerance =
      false;  // the tolerance would have let it pass, a rule against constants did not
};

// What comparing the elements of one floating-point output has found, wherever that was done.
struct output_errors {
  struct measures {
    double worst_ratio = 0;  // largest |a - b| over what is allowed there
    double relative_l2 = 0;
  };
  std::optional<std::size_t>
      first_bad;  // NaN or infinity where none is expected, or the other way around
  measures given;
  std::size_t worst_at = 0;
  measures own;  // of the reference in its own type against its float64 run
  bool is_constant = false;
  bool is_expected_constant = false;
  double given_error = 0;         // as sums of squares: of the differences,
  double own_error = 0;           // of the reference's own,
  double expected_norm = 0;       // of the expected elements,
  double expected_deviation = 0;  // and of those less their mean
};

// One element of the actual and of the expected output, and whether it was never written: for
// messages.
struct element_text {
  double actual = 0;
  double expected = 0;
  bool is_poison = false;
};

// How far the reference in its own type is from its float64 run, over what the tolerance allows.
// Beyond 1 the order of its operations decides what is right, and programs that are may be refused.
double inexactness_of_reference(const output_errors& errors, tolerance allowed);

// What the errors mean: the part of the rule that looks at no element. `look` is asked for the one
// that the message names.
agreement conclude(const output_errors& errors, const tensor_layout& layout, tolerance allowed,
                   const std::function<element_text(std::size_t)>& look);
// The same for a wrong element of an exact type; nothing: there is none.
agreement conclude_exact(std::optional<std::size_t> first_wrong, const tensor_layout& layout,
                         const std::function<element_text(std::size_t)>& look);

// evaluation.md section 2, point 5. `allowed` is the tolerance for the output's type; exact types
// ignore it.
agreement compare_output(const tensor_value& actual, const tensor_value& own,
                         const tensor_value* wide, tolerance allowed);

// Number, shapes and types first, then every output by `compare`, wherever it lies. The first
// problem names its output.
agreement compare_all(const std::vector<tensor_layout>& given,
                      const std::vector<tensor_layout>& expected,
                      const std::function<agreement(std::size_t)>& compare);
// The same for outputs in the host's memory.
agreement compare_outputs(const value_set& actual, const expected_outputs& expected, const task& t);

}  // namespace hone
