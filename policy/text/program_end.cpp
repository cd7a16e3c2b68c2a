#include "policy/text/program_end.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace hone {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(blanks) - begin + 1);
}

// Returns true for the heading `## Code Implementation`, with any white space inside.
bool is_code_heading(std::string_view line) {
  if (!line.starts_with("##")) return false;
  line = trimmed(line.substr(2));
  const std::size_t blank = std::min(line.find_first_of(blanks), line.size());
  return line.substr(0, blank) == "Code" && trimmed(line.substr(blank)) == "Implementation";
}

// Returns true if the first word behind a fence is `python`, in any case.
bool is_python_fence(std::string_view info) {
  std::string word(info.substr(0, info.find_first_of(blanks)));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word == "python";
}

}  // namespace

bool ends_with_program(std::string_view document) {
  std::size_t open = 0;  // backquotes of the fence that is open
  bool is_code = false;  // behind the heading of the program; blocks before it do not count
  bool is_python = false;
  bool has_ended = false;
  while (!document.empty()) {
    const std::size_t end = std::min(document.find('\n'), document.size());
    const std::string_view line = trimmed(document.substr(0, end));
    document.remove_prefix(std::min(end + 1, document.size()));
    if (line.empty()) continue;
    const std::size_t marks = std::min(line.find_first_not_of('`'), line.size());
    has_ended = false;
    if (open == 0 && is_code_heading(line)) is_code = true;
    if (open > 0 && marks >= open && marks == line.size()) {
      has_ended = is_python;
      open = 0;
    } else if (open == 0 && marks >= 3) {
      open = marks;
      is_python = is_code && is_python_fence(trimmed(line.substr(marks)));
    }
  }
  return has_ended;
}

}  // namespace hone
