#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hone {

// Reduce messages of TorchScript's front end and interpreter to what the author of a program needs.

// Takes a source, and throws what the front end throws.
using front_end = std::function<void(const std::string&)>;

// Puts the reason for which the front end refused a source into one line, which begins with the
// place in the program if it is known. `parse` only parses, `compile` compiles as well.
std::string explain_refusal(const std::string& raw, const std::string& source,
                            const front_end& parse, const front_end& compile);

// Returns "python:4: " if the interpreter's traceback names line 4 of the program last, or "".
std::string place_in_traceback(std::string_view traceback);

}  // namespace hone
