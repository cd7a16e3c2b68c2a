#pragma once

#include <string>
#include <variant>

#include "tasks/task_file.hpp"

namespace hone {

// Prints a number so that Python and C++ read the same value.
std::string print_exactly(double x);

// Returns a parameter of an initializer in a case, which may be the name of a size.
double value_of(const std::variant<double, std::string>& argument, const task_case& at);

// Prints a TorchScript function draw(), which returns values of the tensor on the CPU, drawn as the
// task draws them but not yet cast. The tensor must not have a data file.
std::string print_drawing(const tensor_spec& tensor, const task_case& at);

}  // namespace hone
