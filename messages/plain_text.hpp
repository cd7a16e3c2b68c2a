#pragma once

#include <string>
#include <string_view>

namespace hone {

// Returns `text` with '?' instead of characters that could fool a terminal or a reader: control
// and format characters except newline and tab, and bytes that are not UTF-8. For messages that
// quote a candidate.
std::string plain_text(std::string_view text);

// Returns the first `most` bytes of UTF-8 text, or fewer, so that no character is cut.
std::string_view first_bytes(std::string_view text, std::size_t most);

}  // namespace hone
