#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evaluation/devices/values.hpp"

namespace hone {

// What a reference says that a call's outputs are: in float64 where it can be run so, and in its own types.
struct expected_outputs {
  value_set own;
  std::optional<value_set> wide;  // same count and shapes; floating types widened
};

// Agreement of one output. Ratios are measured error over allowed error: at most 1 is agreement.
struct agreement {
  double worst_element = 0;
  double relative_l2 = 0;  // the error itself, not a ratio
  std::optional<std::string> problem;
  bool only_by_tolerance = false;  // the tolerance would have let it pass, a rule against constants did not
};

// evaluation.md section 2, point 5. `allowed` is the tolerance for the output's type; exact types ignore it.
agreement compare_output(const tensor_value& actual, const tensor_value& own, const tensor_value* wide, tolerance allowed);

// Number, shapes and types first, then every output. The first problem names its output.
agreement compare_outputs(const value_set& actual, const expected_outputs& expected, const task& t);

}  // namespace hone
