#pragma once

#include <exception>
#include <string>

namespace hone {

// Returns what an exception of nlohmann::json says, without the name of its kind in brackets.
inline std::string plain_message(const std::exception& e) {
  const std::string text = e.what();
  const std::size_t end = text.find("] ");
  return text.starts_with("[json.exception.") && end != std::string::npos ? text.substr(end + 2)
                                                                          : text;
}

}  // namespace hone
