#include "evaluation/exporting/program_text.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "embedded/exported_prelude.hpp"

namespace hone {

std::vector<std::string> launched_names(std::string_view python) {
  static const RE2 pattern(R"(\blaunch\(\s*["']([^"']+)["'])");
  std::vector<std::string> names;
  re2::StringPiece rest(python.data(), python.size());
  for (std::string name; RE2::FindAndConsume(&rest, pattern, &name);) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

bool defines_function(std::string_view python, const std::string& function) {
  return RE2::PartialMatch(re2::StringPiece(python.data(), python.size()),
                           "(?m)^def[ \\t]+" + RE2::QuoteMeta(function) + "[ \\t]*\\(");
}

std::string plain_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == '"' || c == '\\'; },
      ' ');
  return text;
}

std::string exported_declarations() {
  constexpr std::string_view begin = "#pragma once\n";
  const std::string_view all = embedded::exported_prelude;
  return std::string(all.substr(all.find(begin) + begin.size()));
}

}  // namespace hone
