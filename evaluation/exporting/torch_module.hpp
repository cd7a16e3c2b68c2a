#pragma once

#include <string>
#include <vector>

#include "evaluation/exporting/program_text.hpp"
#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone {

// Prints a variant of a task as a Python module that needs torch and nothing of Hone. The module
// has the task's module as `Model`, the drop-in `ModelNew`, get_inputs() and get_init_inputs(), in
// KernelBench's convention. `notes`: lines about the variant's origin for the head of the file.
// Throws export_error if the task holds values that only its data file has.
std::string print_torch_module(const task& t, const variant_document& variant,
                               const std::vector<std::string>& notes);

}  // namespace hone
