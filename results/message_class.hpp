#pragma once

#include <string>
#include <string_view>

namespace hone {

// Returns the first line of a message with marks for numbers and quoted names, so that messages of
// one cause are equal; about 120 bytes at most.
std::string message_class(std::string_view message);

}  // namespace hone
