#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// The reason why a variant cannot be exported, as a sentence for people.
class export_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the kernels of a cuda block that a host program names, in order and each once: a launch
// may choose among names.
std::vector<std::string> launched_names(std::string_view python, std::string_view cuda);

// Return true if a Python text defines a function or class of this name, or calls a function.
bool defines_function(std::string_view python, const std::string& function);
bool defines_class(std::string_view python, const std::string& name);
bool calls_function(std::string_view python, const std::string& function);

// Removes the imports from __future__ of a Python text, which must come first in a file, and
// returns them.
std::string take_future_imports(std::string& python);

// Returns the text without what would end a comment, a line or a string.
std::string plain_line(std::string text);

// Returns the device code that precedes an exported block: the declarations of the prelude, without
// the comment about Hone, and device_functions.cuh if the block uses these.
std::string exported_declarations(std::string_view block);

}  // namespace hone
