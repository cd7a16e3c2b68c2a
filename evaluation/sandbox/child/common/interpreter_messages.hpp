#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hone {

// Reduce messages of TorchScript's front end and interpreter to what the author of a program needs.

// Puts the reason for which the front end refused a source into one line, which begins with the
// place in the program if the message names one. `parse`: throws what the parser throws.
std::string explain_refusal(const std::string& raw, const std::string& source,
                            const std::function<void(const std::string&)>& parse);

// Returns "python:4: " if the interpreter's traceback names line 4 of the program last, or "".
std::string place_in_traceback(std::string_view traceback);

}  // namespace hone
