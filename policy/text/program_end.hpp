#pragma once

#include <string_view>

namespace hone {

// True if a document ends with the fence that closes its python block, blank lines aside. That
// block is the last one of a document in the form that prompts ask for, so nothing that follows
// belongs to the program.
bool ends_with_program(std::string_view document);

}  // namespace hone
