#pragma once

#include <string_view>

namespace hone::testing_support {

// Returns whether a text has what only a programmer understands: messages of libraries.
inline bool is_raw(std::string_view said) {
  for (const std::string_view raw :
       {"INTERNAL ASSERT", "json.exception", "system_error(", "file an issue", "Traceback",
        "basic_string::", "bad_alloc", "terminate called"}) {
    if (said.find(raw) != said.npos) return true;
  }
  return false;
}

}  // namespace hone::testing_support
