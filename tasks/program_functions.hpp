#pragma once

#include <string>
#include <string_view>

namespace hone {

// Returns a host program or a reference as TorchScript takes it, which knows functions only,
// without what people write around them out of habit: imports of names that are defined anyway,
// docstrings, and constants such as `BLOCK = 256`, whose values take the place of their names.
// Constants are made of numbers, strings, arithmetic, lists, and names of `math` and `torch`.
// Anything else stays as it is. Lines keep their numbers. Takes time linear in the text's length.
std::string functions_of_program(const std::string& python);

// Returns true if a python block is a Python module with a class ModelNew, and not a host program.
bool is_python_module(std::string_view python);

}  // namespace hone
