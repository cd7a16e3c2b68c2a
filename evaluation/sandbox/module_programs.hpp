#pragma once

#include <string>

#include "evaluation/program/source.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Returns the program of a Python module that replaces the module of a task.
program_source module_program(const std::string& text, const task& t);
// Returns the program of the module that a task was imported from. It shows the task's parameters.
// If there is none, it is a module that calls the task's reference, which must have no parameters.
program_source module_of(const task& t);

// Returns why no Python module can be judged on a task, or an empty text.
std::string problem_of_modules(const task& t);

}  // namespace hone
