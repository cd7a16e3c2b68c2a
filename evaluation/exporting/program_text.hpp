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

// Returns the names of the kernels that a host program launches, in order and each once.
std::vector<std::string> launched_names(std::string_view python);

// Returns true if a host program defines a function of this name.
bool defines_function(std::string_view python, const std::string& function);

// Returns the text without what would end a comment, a line or a string.
std::string plain_line(std::string text);

// Returns the device code that precedes an exported block: the declarations of the prelude, without
// the comment about Hone.
std::string exported_declarations();

}  // namespace hone
