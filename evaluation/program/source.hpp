#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hone {

// A TorchScript program that a session opens: a reference, a host program, or an initializer's
// expression.
struct program_source {
  std::string python;
  std::size_t inputs = 0;      // arguments of forward() that are inputs
  std::size_t parameters = 0;  // arguments of forward(), after the inputs, that are parameters
};

// Facts about the first of the programs that a session has opened.
struct opened_programs {
  std::vector<std::string> launches;  // names of the kernels that it launches, in order
  bool has_prepare = false;
  std::size_t convolutions = 0;  // in the text of forward()
  program_id normal_form;        // hash of the program without its names
};

}  // namespace hone
