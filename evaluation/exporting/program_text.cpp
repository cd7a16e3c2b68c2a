#include "evaluation/exporting/program_text.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "embedded/exported_functions.hpp"
#include "embedded/exported_prelude.hpp"
#include "evaluation/compile/cuda_source.hpp"

namespace hone {

namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// Returns true if a block has a function with the name of a kernel, which may be a template's with
// arguments.
bool has_function(std::string_view cuda, const std::string& kernel) {
  const std::string name = kernel_base_name(kernel);
  return !name.empty() && RE2::PartialMatch(piece(cuda), "\\b" + RE2::QuoteMeta(name) + "\\s*\\(");
}

}  // namespace

std::vector<std::string> launched_names(std::string_view python, std::string_view cuda) {
  static const RE2 pattern(R"(["']([\w:]+(?:<[^"']*>)?)["'])");
  std::vector<std::string> names;
  re2::StringPiece rest = piece(python);
  for (std::string name; RE2::FindAndConsume(&rest, pattern, &name);) {
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (is_new && has_function(cuda, name)) names.push_back(name);
  }
  return names;
}

bool defines_function(std::string_view python, const std::string& function) {
  return RE2::PartialMatch(piece(python),
                           "(?m)^def[ \\t]+" + RE2::QuoteMeta(function) + "[ \\t]*\\(");
}

bool defines_class(std::string_view python, const std::string& name) {
  return RE2::PartialMatch(piece(python),
                           "(?m)^class[ \\t]+" + RE2::QuoteMeta(name) + "[ \\t]*[(:]");
}

bool calls_function(std::string_view python, const std::string& function) {
  return RE2::PartialMatch(piece(python), "\\b" + RE2::QuoteMeta(function) + "[ \\t]*\\(");
}

std::string take_future_imports(std::string& python) {
  static const RE2 pattern("((?m)^from __future__ import .*\\n)");
  std::string taken;
  re2::StringPiece rest = python;
  for (std::string line; RE2::FindAndConsume(&rest, pattern, &line);) taken += line;
  RE2::GlobalReplace(&python, pattern, "");
  return taken.empty() ? "" : taken + "\n";
}

std::string plain_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == '"' || c == '\\'; },
      ' ');
  return text;
}

std::string exported_declarations(std::string_view block) {
  constexpr std::string_view begin = "#pragma once\n";
  const std::string_view all = embedded::exported_prelude;
  std::string text(all.substr(all.find(begin) + begin.size()));
  // Blocks may also use the namespace or rename it.
  static const RE2 names_namespace("\\bdevice\\b");
  if (RE2::PartialMatch(block, names_namespace)) text += embedded::exported_functions;
  return text;
}

}  // namespace hone
