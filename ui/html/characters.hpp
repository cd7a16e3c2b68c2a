#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hone::html {

// One character of a text that may be invalid UTF-8. All functions here are pure and thread-safe.
struct character {
  char32_t code = 0xFFFD;  // U+FFFD for a byte that begins no valid character
  std::size_t bytes = 1;   // length in the text
};

// Returns the character at byte `offset`, which must be less than the size of the text. Overlong
// forms, surrogates and code points above U+10FFFF are invalid.
character character_at(std::string_view text, std::size_t offset);

// Returns whether a reader could miss or be fooled by a character: controls except newline and tab,
// bidirectional controls, zero-width and tag characters, line separators and noncharacters.
bool is_deceptive(char32_t code);

// Returns whether a character is drawn over the one before it.
bool is_combining(char32_t code);

// Returns the longest prefix of at most `max_bytes` bytes that does not cut a character.
std::string_view first_bytes(std::string_view text, std::size_t max_bytes);

// Returns the text, or its beginning with an ellipsis, in at most `max_columns` columns of a
// monospace font. East Asian characters and emoji take two columns, combining characters none; a
// deceptive character takes the eight of its marker "[U+202E]".
std::string shortened(std::string_view text, std::size_t max_columns);

// Returns the columns that `shortened` counts, or `max_columns` + 1 if there are more.
std::size_t columns_of(std::string_view text, std::size_t max_columns);

}  // namespace hone::html
