#pragma once

#include <filesystem>
#include <string>

namespace hone {

// Returns the path of a program: `name` itself if it contains a slash, else the first program of
// this name in the folders of PATH. Throws std::runtime_error if there is none.
std::string find_program(const std::string& name);

// Returns the Python interpreter with torch: the value of the environment variable HONE_PYTHON, or
// else the interpreter of the environment whose LibTorch this process has loaded. Throws
// std::runtime_error if there is none.
std::filesystem::path find_python();

}  // namespace hone
