#pragma once

#include "tasks/task_file.hpp"

namespace hone {

class toml_view;

// Compare the sections of a parsed task with each other. `view` is the task file, for messages.
// Both throw format_error.

// Checks that tensors have different names, that every case gives a value to every size that a
// tensor uses and to no other, and that no tensor has more than max_dimension elements.
void check_names_and_sizes(const toml_view& view, const task& parsed);
// Checks for each parameter with a data file that the file holds a tensor of the parameter's name,
// with the declared type, and with the declared shape in every case.
void check_data(const toml_view& view, const task& parsed);

}  // namespace hone
