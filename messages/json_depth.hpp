#pragma once

#include <cstddef>
#include <string_view>

namespace hone {

// Lists and objects within each other in a JSON text of a policy or a server. Values that are
// nested deeper exhaust the stack where they are copied.
inline constexpr std::size_t max_json_depth = 100;

// Returns true if a text has lists or objects that are nested deeper than that. Linear in its
// length.
inline bool is_nested_too_deeply(std::string_view json) {
  std::size_t depth = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_text) {
      if (c == '\\') ++i;
      is_text = c != '"';
    } else if (c == '"') {
      is_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_json_depth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace hone
