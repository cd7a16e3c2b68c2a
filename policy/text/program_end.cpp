#include "policy/text/program_end.hpp"

#include <algorithm>

namespace hone {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

bool ends_with_program(std::string_view document) {
  std::size_t open = 0;  // backquotes of the fence that is open
  bool is_python = false;
  bool has_ended = false;
  while (!document.empty()) {
    const std::size_t end = std::min(document.find('\n'), document.size());
    const std::string_view line = trimmed(document.substr(0, end));
    document.remove_prefix(std::min(end + 1, document.size()));
    if (line.empty()) continue;
    const std::size_t marks = std::min(line.find_first_not_of('`'), line.size());
    has_ended = false;
    if (open > 0 && marks >= open && marks == line.size()) {
      has_ended = is_python;
      open = 0;
    } else if (open == 0 && marks >= 3) {
      open = marks;
      is_python = trimmed(line.substr(marks)) == "python";
    }
  }
  return has_ended;
}

}  // namespace hone
