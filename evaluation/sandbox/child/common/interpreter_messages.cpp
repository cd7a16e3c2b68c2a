#include "evaluation/sandbox/child/common/interpreter_messages.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

namespace hone {
namespace {

// If a line of a message of LibTorch names a place in the program, such as `File "python", line 3`,
// returns "python:3: ", and "" for a place elsewhere. Returns nullopt for other lines.
std::optional<std::string> place_in(std::string_view line) {
  constexpr std::string_view begin = "File \"";
  constexpr std::string_view middle = "\", line ";
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r\v\f"), line.size()));
  if (!line.starts_with(begin)) return std::nullopt;
  line.remove_prefix(begin.size());
  const std::size_t end_of_name = line.find('"');
  if (end_of_name == std::string_view::npos || !line.substr(end_of_name).starts_with(middle))
    return std::nullopt;
  const std::string_view rest = line.substr(end_of_name + middle.size());
  const std::string_view number = rest.substr(0, rest.find_first_not_of("0123456789"));
  if (number.empty()) return std::nullopt;
  return line.substr(0, end_of_name) == "python" ? "python:" + std::string(number) + ": " : "";
}

// Reduces a message of the front end, which shows the source around the error, to one line that
// begins with the error's place.
std::string line_of_refusal(const std::string& raw) {
  std::istringstream in(raw);
  std::string message;
  std::string place;
  int kept = 0;
  bool in_snippet = false;
  for (std::string line; std::getline(in, line);) {
    if (const auto named = place_in(line)) {
      if (place.empty()) place = *named;
      in_snippet = true;
      continue;
    }
    if (in_snippet || line.empty() || kept >= 4) continue;
    if (line.find("(function operator") != std::string::npos ||
        line.starts_with("Exception raised from") || line.starts_with("frame #"))
      break;
    message += (message.empty() ? "" : " ") + line.substr(0, 300);
    ++kept;
  }
  if (message.starts_with("expected def but found"))
    message =
        "apart from functions, a program has docstrings, constants, and imports of torch, math "
        "and typing only";
  while (message.ends_with(':') || message.ends_with(' ')) message.pop_back();
  return place + (message.empty() ? "the program could not be compiled" : message);
}

constexpr std::string_view broken_assumption = "INTERNAL ASSERT FAILED";

// Returns true if the front end takes the source.
bool is_taken(const front_end& by, const std::string& source) {
  try {
    by(source);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Returns true if an assumption of the front end does not hold for the source.
bool breaks_assumption(const front_end& of, const std::string& source) {
  try {
    of(source);
    return false;
  } catch (const std::exception& e) {
    return std::string_view(e.what()).find(broken_assumption) != std::string_view::npos;
  }
}

// LibTorch's front end has assumptions about programs that do not always hold, `yield` for one. Its
// message then names no line and calls for a report. If the parser fails, the line is the one with
// which it first does; otherwise it is the statement without which the program compiles. Returns
// "python:3: ", or "" if there is no such line.
std::string place_of_broken_assumption(const std::string& source, const front_end& parse,
                                       const front_end& compile) {
  const bool is_of_parser = breaks_assumption(parse, source);
  std::size_t line = 0;
  std::size_t begin = 0;
  for (std::size_t end = source.find('\n'); end != std::string::npos;
       begin = end + 1, end = source.find('\n', begin)) {
    ++line;
    const std::size_t statement = source.find_first_not_of(" \t\n", begin);
    const bool is_here =
        is_of_parser
            ? breaks_assumption(parse, source.substr(0, end + 1))
            : statement < end &&
                  is_taken(compile, source.substr(0, statement) + "pass" + source.substr(end));
    if (is_here) return "python:" + std::to_string(line) + ": ";
  }
  return "";
}

}  // namespace

std::string explain_refusal(const std::string& raw, const std::string& source,
                            const front_end& parse, const front_end& compile) {
  constexpr std::string_view plea = "please report a bug to PyTorch.";
  if (raw.find(broken_assumption) == std::string::npos) return line_of_refusal(raw);
  const std::size_t at = raw.find(plea);
  std::istringstream rest(at == std::string::npos ? "" : raw.substr(at + plea.size()));
  std::string detail;
  std::getline(rest, detail);
  const std::size_t begin = detail.find_first_not_of(' ');
  return place_of_broken_assumption(source, parse, compile) +
         "TorchScript does not have this statement" +
         (begin == std::string::npos ? "" : ": " + detail.substr(begin, 200));
}

std::string place_in_traceback(std::string_view traceback) {
  constexpr std::string_view mark = "File \"python\", line ";
  const auto at = traceback.rfind(mark);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = traceback.substr(at + mark.size());
  const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  return "python:" + std::string(rest.substr(0, digits)) + ": ";
}

}  // namespace hone
