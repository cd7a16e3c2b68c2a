#include "results/message_class.hpp"

#include <algorithm>
#include <cctype>

namespace hone {
namespace {

bool is_name(std::string_view quoted) {
  constexpr std::size_t max_phrase = 40;  // bytes of a phrase that is no name but an explanation
  return quoted.size() > max_phrase || std::all_of(quoted.begin(), quoted.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

}  // namespace

std::string message_class(std::string_view message) {
  constexpr std::size_t max_bytes = 120;
  std::string made;
  const std::string_view line = message.substr(0, message.find('\n'));
  for (std::size_t at = 0; at < line.size() && made.size() < max_bytes;) {
    const char c = line[at];
    const std::size_t quote_end =
        c == '\'' || c == '"' ? line.find(c, at + 1) : std::string_view::npos;
    const bool begins_word = at == 0 || std::isalnum(static_cast<unsigned char>(line[at - 1])) == 0;
    if (quote_end != std::string_view::npos && is_name(line.substr(at + 1, quote_end - at - 1))) {
      made += "'…'";
      at = quote_end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 && begins_word) {
      made += "N";
      while (at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) != 0 ||
                                  line[at] == '.' || line[at] == '+'))
        ++at;
    } else {
      made += c;
      ++at;
    }
  }
  return made;
}

}  // namespace hone
