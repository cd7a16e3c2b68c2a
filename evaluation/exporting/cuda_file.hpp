#pragma once

#include <string>
#include <vector>

#include "evaluation/exporting/program_text.hpp"
#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone {

// Prints a variant of a task as a CUDA file for C++ programs, which needs LibTorch and nothing of
// Hone. The file has a class `model` in a namespace of the task's name, and a program that compares
// the variant with the task's reference. `notes`: lines about the variant's origin for the head of
// the file.
std::string print_cuda_file(const task& t, const variant_document& variant,
                            const std::vector<std::string>& notes);

}  // namespace hone
