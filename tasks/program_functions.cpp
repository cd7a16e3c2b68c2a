#include "tasks/program_functions.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {
namespace {

// A longer constant is none, so that constants made of constants cannot grow without bound. Names
// keep their place once their values have added this much to the text.
constexpr std::size_t max_constant = 2000;
constexpr std::size_t max_added = 64 << 10;

struct token {
  enum class kind { name, number, string, symbol };
  kind is;
  std::string_view text;  // lies in the program's
  std::size_t depth;      // number of brackets around it
};

// A logical line of Python: one statement, or several on one line.
struct statement {
  std::vector<token> tokens;
  bool is_at_top = false;  // is not indented
};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Returns the end of the string literal whose quotes begin at `at`, or the text's end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string thrice(3, quote);
  const bool is_long = text.substr(at, 3) == thrice;
  for (std::size_t i = at + (is_long ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (is_long ? text.substr(i, 3) == thrice : text[i] == quote) {
      return i + (is_long ? 3 : 1);
    } else if (!is_long && text[i] == '\n') {
      return i;
    }
  }
  return text.size();
}

bool is_string_prefix(std::string_view text) {
  return text.size() <= 2 && text.find_first_not_of("rRbBuUfF") == std::string_view::npos;
}

// Splits a program into statements.
class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}

  std::vector<statement> scan() {
    while (at_ < text_.size()) step();
    end_statement();
    return std::move(statements_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      ++at_;
      if (depth_ == 0) end_statement();
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\\' && text_.substr(at_, 2) == "\\\n") {
      at_ += 2;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
    } else if (is_name_character(c)) {
      take_word();
    } else if (c == '"' || c == '\'') {
      take(token::kind::string, end_of_string(text_, at_));
    } else {
      take_symbol();
    }
  }

  // Takes a name, a number, or a string with a prefix such as r.
  void take_word() {
    std::size_t end = at_;
    const bool is_number = std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
    while (end < text_.size() &&
           (is_name_character(text_[end]) || (is_number && text_[end] == '.')))
      ++end;
    const bool is_before_quotes = end < text_.size() && (text_[end] == '"' || text_[end] == '\'');
    if (is_before_quotes && is_string_prefix(text_.substr(at_, end - at_)))
      take(token::kind::string, end_of_string(text_, end));
    else
      take(is_number ? token::kind::number : token::kind::name, end);
  }

  // Takes a symbol of one character, or one with which Python compares or assigns.
  void take_symbol() {
    static constexpr std::array<std::string_view, 15> longer = {
        "**=", "//=", "<<=", ">>=", "==", "!=", "<=", ">=",
        "+=",  "-=",  "*=",  "/=",  "%=", "->", ":="};
    const char c = text_[at_];
    const auto found = std::find_if(longer.begin(), longer.end(), [&](std::string_view symbol) {
      return text_.substr(at_, symbol.size()) == symbol;
    });
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    take(token::kind::symbol, at_ + (found == longer.end() ? 1 : found->size()));
    if (c == '(' || c == '[' || c == '{') ++depth_;
  }

  void take(token::kind is, std::size_t end) {
    if (current_.tokens.empty()) current_.is_at_top = at_ == 0 || text_[at_ - 1] == '\n';
    current_.tokens.push_back({is, text_.substr(at_, end - at_), depth_});
    at_ = end;
  }

  void end_statement() {
    if (!current_.tokens.empty()) statements_.push_back(std::move(current_));
    current_ = {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  statement current_;
  std::vector<statement> statements_;
};

bool is_assignment(std::string_view symbol) {
  return symbol.ends_with('=') && symbol != "==" && symbol != "!=" && symbol != "<=" &&
         symbol != ">=";
}

bool is_docstring(const statement& s) {
  return std::all_of(s.tokens.begin(), s.tokens.end(), [](const token& t) {
    const std::size_t quote = t.is == token::kind::string ? t.text.find_first_of("\"'") : 0;
    return t.is == token::kind::string && t.text.size() > quote + 1 &&
           t.text.back() == t.text[quote];
  });
}

struct constant {
  std::string value;
  bool names_torch = false;
};
using constants = std::map<std::string_view, constant>;

// Returns true if a constant may have this part. `before` is the part before it, or null.
bool may_be_in_constant(const token& t, const token* before) {
  static const std::set<std::string_view> names = {"True", "False", "None", "float", "int",
                                                   "math", "min",   "max",  "torch"};
  static const std::set<std::string_view> symbols = {"+", "-", "*", "/", "%", "&", "|", "^", "~",
                                                     "<", ">", "(", ")", "[", "]", ",", "."};
  const bool is_symbol = t.is == token::kind::symbol;
  if (!is_symbol && before != nullptr && before->is != token::kind::symbol) return false;
  const bool is_attribute = before != nullptr && before->text == ".";
  if (t.is == token::kind::name) return is_attribute || names.contains(t.text);
  return !is_symbol || symbols.contains(t.text);
}

// Returns a number as TorchScript reads it, which takes a digit E of a hexadecimal number for an
// exponent.
std::string plain_number(std::string_view number) {
  std::string digits(number);
  std::erase(digits, '_');
  if (!digits.starts_with("0x") && !digits.starts_with("0X")) return digits;
  return std::to_string(std::strtoull(digits.c_str(), nullptr, 16));
}

// Returns the value in `NAME = value` with the constants in it replaced, or one without text if
// that is no constant.
constant read_constant(std::span<const token> tokens, const constants& known) {
  constant made;
  bool calls = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto& t = tokens[i];
    const token* const before = i > 0 ? &tokens[i - 1] : nullptr;
    const bool is_attribute = before != nullptr && before->text == ".";
    const bool follows_value = before != nullptr && before->is != token::kind::symbol;
    const auto other = known.find(t.text);
    if (t.is == token::kind::name && !is_attribute && !follows_value && other != known.end()) {
      made.value += other->second.value;
      made.names_torch = made.names_torch || other->second.names_torch;
      continue;
    }
    // TorchScript makes a float of a power.
    const bool is_power = t.text == "*" && before != nullptr && before->text == "*";
    if (!may_be_in_constant(t, before) || is_power) return {};
    calls = calls || t.text == "(";
    made.names_torch = made.names_torch || t.text == "torch";
    made.value += t.is == token::kind::number ? plain_number(t.text) : std::string(t.text);
  }
  const bool makes_tensors = made.names_torch && calls;
  if (made.value.size() > max_constant || makes_tensors ||
      made.value.find('\n') != std::string::npos)
    return {};
  if (tokens.size() > 1) made.value = "(" + made.value + ")";
  return made;
}

// Returns the parts of `NAME = value` or `NAME: type = value` behind the sign, or none for another
// statement.
std::span<const token> assigned_value(const statement& s) {
  const std::span<const token> tokens = s.tokens;
  if (tokens.size() < 3 || tokens[0].is != token::kind::name) return {};
  if (tokens[1].text == "=") return tokens.subspan(2);
  if (tokens[1].text != ":") return {};
  const auto sign = std::find_if(tokens.begin(), tokens.end(),
                                 [](const token& t) { return t.depth == 0 && t.text == "="; });
  return sign == tokens.end() ? std::span<const token>() : std::span(sign + 1, tokens.end());
}

// The names that a function binds itself.
class bound_names {
 public:
  void add(const statement& s) {
    const std::vector<token>& tokens = s.tokens;
    const bool is_header = tokens.front().text == "def";
    const bool has_type = tokens.size() > 1 && tokens[1].text == ":";
    const bool has_brackets = tokens.front().text == "(" || tokens.front().text == "[";
    const auto sign = std::find_if(tokens.begin(), tokens.end(), [&](const token& t) {
      return t.depth == 0 && (is_assignment(t.text) || (has_type && t.text == ":"));
    });
    const std::ptrdiff_t targets =
        sign == tokens.end() || is_header ? 0 : std::distance(tokens.begin(), sign);
    bool is_loop_variable = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].text == "for") is_loop_variable = true;
      if (tokens[i].text == "in") is_loop_variable = false;
      if (tokens[i].is != token::kind::name) continue;
      const bool is_parameter = is_header && tokens[i].depth == 1 && i > 0 &&
                                (tokens[i - 1].text == "(" || tokens[i - 1].text == ",");
      const bool is_target =
          std::cmp_less(i, targets) && tokens[i].depth <= (has_brackets ? 1U : 0U);
      if (is_parameter || is_target || is_loop_variable) names_.insert(tokens[i].text);
    }
  }

  bool contains(std::string_view name) const { return names_.contains(name); }

 private:
  std::set<std::string_view> names_;
};

// Returns the text of a statement with the comment behind it.
std::string_view with_comment(const statement& s, std::string_view program) {
  const auto begin = static_cast<std::size_t>(s.tokens.front().text.data() - program.data());
  const std::string_view last = s.tokens.back().text;
  const auto last_end = static_cast<std::size_t>(last.data() + last.size() - program.data());
  return program.substr(begin, program.find('\n', last_end) - begin);
}

// Replaces parts of a text. Edits must be made in the order of their places.
class editor {
 public:
  explicit editor(std::string_view text) : text_(text) {}

  void replace(std::string_view part, std::string_view by) {
    const auto begin = static_cast<std::size_t>(part.data() - text_.data());
    edited_.append(text_, copied_, begin - copied_);
    edited_ += by;
    copied_ = begin + part.size();
  }

  // Removes a statement with its comment, and keeps its line ends.
  void blank(const statement& s) {
    const std::string_view all = with_comment(s, text_);
    replace(all,
            std::string(static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n')), '\n'));
  }

  std::string finish() {
    edited_.append(text_, copied_);
    return std::move(edited_);
  }

 private:
  std::string_view text_;
  std::size_t copied_ = 0;
  std::string edited_;
};

// Replaces the names of constants in one function. `room`: what the text may still grow by.
void put_in(const constants& values, std::span<const statement> function, editor& edits,
            std::size_t& room) {
  bound_names bound;
  for (const statement& s : function) bound.add(s);
  for (const statement& s : function) {
    if (is_docstring(s)) {
      edits.blank(s);
      continue;
    }
    const bool is_header = s.tokens.front().text == "def";
    for (std::size_t i = 0; i < s.tokens.size(); ++i) {
      const token& t = s.tokens[i];
      const std::string_view before = i > 0 ? s.tokens[i - 1].text : "";
      const auto found = values.find(t.text);
      if (t.is != token::kind::name || found == values.end() || before == ".") continue;
      const bool is_keyword = t.depth > 0 && i + 1 < s.tokens.size() && s.tokens[i + 1].text == "=";
      const bool is_default = is_header && before == "=";
      const std::string& value = found->second.value;
      if (is_keyword || (bound.contains(t.text) && !is_default) || value.size() > room) continue;
      room -= value.size();
      edits.replace(t.text, value);
    }
  }
}

// Imports of names that are defined anyway.
bool is_habitual_import(const statement& s, std::string_view program) {
  static const RE2 habitual(
      R"((?:import torch|import math|import torch\.nn\.functional(?: as F)?)"
      R"(|import torch\.nn(?: as nn)?|from torch import (?:Tensor|nn))"
      R"(|from typing import [A-Za-z, ]+|from torch\.nn import functional as F)"
      R"(|from __future__ import annotations)\s*(?:#.*)?)",
      RE2::Latin1);
  const std::string_view line = with_comment(s, program);
  return s.is_at_top && RE2::FullMatch(re2::StringPiece(line.data(), line.size()), habitual);
}

// Decorators that change nothing here.
bool is_habitual_decorator(const statement& s) {
  static const std::set<std::string> habitual = {"@torch.no_grad()", "@torch.inference_mode()",
                                                 "@torch.jit.script"};
  if (!s.is_at_top || s.tokens.front().text != "@" || s.tokens.size() > 7) return false;
  std::string text;
  for (const token& t : s.tokens) text += t.text;
  return habitual.contains(text);
}

// Returns the constants that a program defines, once each, and notes their statements.
constants constants_of(const std::vector<statement>& statements, std::vector<bool>& is_constant) {
  constants values;
  std::map<std::string_view, std::size_t> times;
  for (const statement& s : statements) {
    if (s.is_at_top && !assigned_value(s).empty()) ++times[s.tokens.front().text];
  }
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const statement& s = statements[i];
    const std::span<const token> value = assigned_value(s);
    if (!s.is_at_top || value.empty() || times[s.tokens.front().text] > 1) continue;
    constant read = read_constant(value, values);
    is_constant[i] = !read.value.empty();
    const bool is_known = read.value == "(torch.Tensor)" && s.tokens.front().text == "Tensor";
    if (is_constant[i] && !is_known) values[s.tokens.front().text] = std::move(read);
  }
  return values;
}

}  // namespace

std::string functions_of_program(const std::string& python) {
  const std::string text = python.empty() || python.ends_with('\n') ? python : python + "\n";
  const std::vector<statement> statements = scanner(text).scan();
  std::vector<bool> is_constant(statements.size());
  const constants values = constants_of(statements, is_constant);
  std::size_t room = max_added;
  editor edits(text);
  for (std::size_t i = 0; i < statements.size();) {
    if (is_constant[i] || is_habitual_import(statements[i], text) ||
        is_habitual_decorator(statements[i])) {
      edits.blank(statements[i++]);
      continue;
    }
    std::size_t end = i + 1;
    while (end < statements.size() && !statements[end].is_at_top) ++end;
    put_in(values, std::span(statements).subspan(i, end - i), edits, room);
    i = end;
  }
  return edits.finish();
}

bool is_python_module(std::string_view python) {
  static const RE2 definition(R"((?m)^(class[ \t]+ModelNew\b|ModelNew[ \t]*=))");
  return RE2::PartialMatch(python, definition);
}

}  // namespace hone
