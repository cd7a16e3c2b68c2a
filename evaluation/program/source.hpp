#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "messages/ids.hpp"

namespace hone {

// The facts about a task that a session needs to run a Python module.
struct task_module {
  // The module that the task was imported from. Its get_init_inputs() gives the arguments of the
  // constructor; without this function there are none.
  std::string text;
  // The names of the task's parameters, if the session has to show their values.
  std::vector<std::string> parameters;
};

// A program that a session opens: TorchScript (a reference, a host program, or an initializer's
// expression), or a Python module.
struct program_source {
  std::string python;
  std::size_t inputs = 0;      // arguments of forward() that are inputs
  std::size_t parameters = 0;  // arguments of forward(), after the inputs, that are parameters
  std::optional<task_module> of_module = std::nullopt;  // of a Python module
};

// Facts about the first of the programs that a session has opened.
struct opened_programs {
  std::vector<std::string> launches;  // names of the kernels that it launches, in order
  bool has_prepare = false;
  std::size_t convolutions = 0;  // in the text of forward()
  program_id normal_form;        // hash of the program without its names
};

}  // namespace hone
