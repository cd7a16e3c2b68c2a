#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace hone {

// Returns the number that a text is as a whole, or nullopt: for an empty text, for other characters
// and for a number that T cannot hold.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace hone
