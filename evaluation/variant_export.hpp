#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone {

// Returns the forms in which a variant can be exported: "torch", a Python module, and "onefile.cu",
// a CUDA file.
const std::vector<std::string>& export_forms();

// Prints a variant of a task as a file that works without Hone. `form`: one of export_forms().
// `notes`: lines about the variant's origin, for the head of the file. Throws export_error.
std::string export_variant(std::string_view form, const task& t, const variant_document& variant,
                           const std::vector<std::string>& notes);

}  // namespace hone
