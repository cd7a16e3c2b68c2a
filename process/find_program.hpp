#pragma once

#include <string>

namespace hone {

// Returns the path of a program: `name` itself if it contains a slash, else the first program of
// this name in the folders of PATH. Throws std::runtime_error if there is none.
std::string find_program(const std::string& name);

}  // namespace hone
