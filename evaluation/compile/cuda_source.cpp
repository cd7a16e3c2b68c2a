#include "evaluation/compile/cuda_source.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace hone {
namespace {

bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         (c & 0x80) != 0;
}
bool is_word(char c) {
  return is_word_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

// Returns the length of the string or character literal whose opening quote is at `at`. Escapes are
// respected, and a line's end ends the literal.
std::size_t quoted_length(std::string_view text, std::size_t at) {
  const char quote = text[at];
  std::size_t i = at + 1;
  while (i < text.size() && text[i] != quote && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size()) - at;
}

// Returns the length of R"delimiter(...)delimiter" from its quote, which is at `at`.
std::size_t raw_length(std::string_view text, std::size_t at) {
  const std::size_t open = text.find('(', at);
  // No longer delimiter is C++, and to look for its end would take long.
  if (open == std::string_view::npos || open - at - 1 > 16) return text.size() - at;
  const std::string close = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() - at : end + close.size() - at;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool starts_number(std::string_view text, std::size_t at) {
  return is_digit(text[at]) || (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1]));
}

// Returns the length of the preprocessing number that starts at `at`.
std::size_t number_length(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() &&
         (is_word(text[end]) || text[end] == '.' ||
          (text[end] == '\'' && end + 1 < text.size() && is_word(text[end + 1])) ||
          ((text[end] == '+' || text[end] == '-') &&
           std::string_view("eEpP").find(text[end - 1]) != std::string_view::npos))) {
    ++end;
  }
  return end - at;
}

bool is_raw_prefix(std::string_view word) {
  return word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR";
}

// Returns true if the quote at `at` opens a raw string: if the word before it is a prefix of one.
bool opens_raw_string(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && at - begin < 4 && is_word(text[begin - 1])) --begin;
  return is_raw_prefix(text.substr(begin, at - begin));
}

bool begins_attribute(const cuda_token& token) {
  return token.text == "__attribute__" || token.text == "__attribute" || token.text == "__declspec";
}

int parse_line_marker(std::string_view line, int otherwise) {
  std::size_t i = 1;
  while (i < line.size() && is_blank(line[i])) ++i;
  if (line.substr(i).starts_with("line")) i += 4;
  while (i < line.size() && is_blank(line[i])) ++i;
  int number = 0;
  const auto [end, error] = std::from_chars(line.data() + i, line.data() + line.size(), number);
  return error == std::errc() ? number : otherwise;
}

}  // namespace

std::vector<cuda_token> tokenize(std::string_view text) {
  std::vector<cuda_token> tokens;
  int line = 1;
  bool at_line_start = true;
  std::size_t i = 0;
  const auto take = [&](cuda_token::kind kind, std::size_t length) {
    const std::string_view piece = text.substr(i, length);
    tokens.push_back({kind, piece, line});
    line += static_cast<int>(std::count(piece.begin(), piece.end(), '\n'));
    i += piece.size();
  };
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      ++i;
      at_line_start = true;
      continue;
    }
    if (is_blank(c) || c == '\r') {
      ++i;
      continue;
    }
    if (c == '#' && at_line_start) {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      const std::string_view directive = text.substr(i, end - i);
      line = parse_line_marker(directive, line + 1) - 1;  // a marker names the line that follows it
      i = end;
      if (i < text.size()) ++i;
      ++line;
      continue;
    }
    at_line_start = false;
    if (is_word_start(c)) {
      std::size_t end = i + 1;
      while (end < text.size() && is_word(text[end])) ++end;
      const std::string_view word = text.substr(i, end - i);
      if (end < text.size() && text[end] == '"' && is_raw_prefix(word)) {
        take(cuda_token::kind::string, end - i + raw_length(text, end));
      } else {
        take(cuda_token::kind::identifier, end - i);
      }
    } else if (starts_number(text, i)) {
      take(cuda_token::kind::number, number_length(text, i));
    } else if (c == '"' || c == '\'') {
      take(c == '"' ? cuda_token::kind::string : cuda_token::kind::character,
           quoted_length(text, i));
    } else {
      const bool is_double_colon = text.substr(i).starts_with("::");
      take(cuda_token::kind::punctuator, is_double_colon ? 2 : 1);
    }
  }
  return tokens;
}

bool is_accepted_include(std::string_view name) {
  constexpr std::array<std::string_view, 7> accepted = {
      "cuda_runtime.h", "math_constants.h", "float.h", "math.h", "cmath", "stdint.h", "cstdint"};
  return std::find(accepted.begin(), accepted.end(), name) != accepted.end();
}

include_scan take_out_includes(std::string_view block) {
  include_scan scan;
  scan.text = std::string(block);
  static const RE2 pattern(
      R"([[:space:]]*(?:#|%:)[[:space:]]*(include|include_next|import)[[:space:]]*)"
      R"([<"]([^>"]*)[>"][[:space:]]*(?://.*|/\*.*\*/[[:space:]]*)?)",
      RE2::Latin1);
  int line = 1;
  bool at_line_start = true;
  for (std::size_t i = 0; i < block.size();) {
    if (at_line_start) {
      const std::size_t end = std::min(block.find('\n', i), block.size());
      const re2::StringPiece content(block.data() + i, end - i);
      std::string directive;
      std::string name;
      if (content.size() < 400 && RE2::FullMatch(content, pattern, &directive, &name)) {
        if (is_accepted_include(name) && directive == "include") {
          std::fill(scan.text.begin() + static_cast<std::ptrdiff_t>(i),
                    scan.text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
        } else {
          scan.refused.push_back({line, name});
        }
        i = end;
        at_line_start = false;
        continue;
      }
    }
    const char c = block[i];
    at_line_start = c == '\n';
    std::size_t length = 1;
    if (block.substr(i).starts_with("//")) {
      length = std::min(block.find('\n', i), block.size()) - i;
    } else if (block.substr(i).starts_with("/*")) {
      const std::size_t end = block.find("*/", i + 2);
      length = (end == std::string_view::npos ? block.size() : end + 2) - i;
    } else if (c == '"' && opens_raw_string(block, i)) {
      length = raw_length(block, i);
    } else if (c == '"' || (c == '\'' && (i == 0 || !is_word(block[i - 1])))) {
      length = quoted_length(block, i);
      if (block[i + length - 1] == '\n') --length;
    }
    const std::string_view piece = block.substr(i, length);
    line += static_cast<int>(std::count(piece.begin(), piece.end(), '\n'));
    i += length;
  }
  return scan;
}

std::string blank_comments(std::string_view text) {
  std::string kept(text);
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    const bool is_line = text.substr(i).starts_with("//");
    if (is_line || text.substr(i).starts_with("/*")) {
      const std::size_t end = text.find(is_line ? "\n" : "*/", i + 2);
      length = (end == std::string_view::npos ? text.size() : end + (is_line ? 0 : 2)) - i;
      std::replace_if(
          kept.begin() + static_cast<std::ptrdiff_t>(i),
          kept.begin() + static_cast<std::ptrdiff_t>(i + length), [](char c) { return c != '\n'; },
          ' ');
    } else if (text[i] == '"' && opens_raw_string(text, i)) {
      length = raw_length(text, i);
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      length = quoted_length(text, i);
    }
    i += length;
  }
  return kept;
}

std::vector<std::string> take_out_leading_headers(include_scan& scan) {
  static const std::set<std::string, std::less<>> worth_it = {"cuda_fp16.h",
                                                              "cuda_bf16.h",
                                                              "cuda_fp8.h",
                                                              "cooperative_groups.h",
                                                              "cooperative_groups/reduce.h",
                                                              "cooperative_groups/scan.h",
                                                              "cooperative_groups/memcpy_async.h",
                                                              "mma.h",
                                                              "cuda_pipeline.h",
                                                              "cuda/pipeline",
                                                              "cuda/barrier",
                                                              "cub/cub.cuh"};
  std::vector<std::string> headers;
  const std::string readable = blank_comments(scan.text);
  int line = 1;
  auto include = scan.refused.begin();  // in the order of lines
  for (std::size_t i = 0; i < readable.size(); ++line) {
    const std::size_t end = std::min(readable.find('\n', i), readable.size());
    const std::string_view content = std::string_view(readable).substr(i, end - i);
    while (include != scan.refused.end() && include->line < line) ++include;
    if (include != scan.refused.end() && include->line == line) {
      if (!worth_it.contains(include->name)) break;
      headers.push_back(include->name);
      std::fill(scan.text.begin() + static_cast<std::ptrdiff_t>(i),
                scan.text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    } else if (content.find_first_not_of(" \t\r") != std::string_view::npos) {
      break;
    }
    i = end + 1;
  }
  return headers;
}

std::set<std::string, std::less<>> declared_kernels(const std::vector<cuda_token>& tokens) {
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text != "__global__") continue;
    // The declarator's name is the last identifier before the parameter list.
    // __launch_bounds__(...) and attributes have separate lists.
    std::string_view name;
    // A further __global__ ends the search, so that its time is linear in the text.
    constexpr auto ends_declarator = [](std::string_view text) {
      return text == ";" || text == "{" || text == "__global__";
    };
    for (std::size_t k = i + 1; k < tokens.size() && !ends_declarator(tokens[k].text); ++k) {
      if (tokens[k].is == cuda_token::kind::identifier) name = tokens[k].text;
      if (tokens[k].text != "(") continue;
      if (!name.starts_with("__")) break;
      int depth = 1;
      while (depth > 0 && ++k < tokens.size() && tokens[k].text != "__global__")
        depth += tokens[k].text == "(" ? 1 : tokens[k].text == ")" ? -1 : 0;
      if (k < tokens.size() && tokens[k].text == "__global__") break;
    }
    if (!name.empty() && !name.starts_with("__")) names.emplace(name);
  }
  return names;
}

std::string kernel_base_name(std::string_view launched) {
  const std::string_view name = launched.substr(0, launched.find('<'));
  const std::size_t colon = name.rfind(':');
  return std::string(colon == std::string_view::npos ? name : name.substr(colon + 1));
}

bool names_a_kernel(std::string_view launched, const std::set<std::string, std::less<>>& kernels) {
  static const RE2 pattern(R"((?:[A-Za-z_]\w*::)*([A-Za-z_]\w*)(?:<[\w:,[:space:]]*>)?)",
                           RE2::Latin1);
  std::string name;
  return launched.size() <= 200 &&
         RE2::FullMatch(re2::StringPiece(launched.data(), launched.size()), pattern, &name) &&
         kernels.contains(name);
}

std::optional<source_problem> find_hidden_include(const include_scan& scan) {
  const std::string readable = blank_comments(scan.text);
  std::string joined;  // continued lines as one line
  int line = 1;
  int first = 1;
  for (std::size_t i = 0; i < readable.size();) {
    const std::size_t end = std::min(readable.find('\n', i), readable.size());
    std::string_view content = std::string_view(readable).substr(i, end - i);
    if (content.ends_with('\r')) content.remove_suffix(1);
    const bool goes_on = content.ends_with('\\');
    joined += goes_on ? content.substr(0, content.size() - 1) : content;
    if (!goes_on) {
      static const RE2 hidden(
          R"([[:space:]]*(?:#|%:|\?\?=)[[:space:]]*(?:include|include_next|import|embed)\b.*)",
          RE2::Latin1);
      static const RE2 plain(
          R"([[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]*[>"][[:space:]]*)", RE2::Latin1);
      if (RE2::FullMatch(joined, hidden) &&
          (first != line || joined.size() >= 400 || !RE2::FullMatch(joined, plain))) {
        return source_problem{first, "an include must name its file, in one line"};
      }
      joined.clear();
      first = line + 1;
    }
    ++line;
    i = end + 1;
  }
  return std::nullopt;
}

std::optional<source_problem> find_forbidden(const std::vector<cuda_token>& tokens) {
  constexpr std::array<std::string_view, 8> assembler = {
      "asm",  "__asm",           "__asm__",          "asm_volatile",
      "_asm", "__builtin_apply", "__builtin_return", "__builtin_longjmp"};
  constexpr std::array<std::string_view, 19> harmless = {
      "aligned",     "__aligned__", "packed",       "__packed__",    "unused",
      "__unused__",  "noinline",    "__noinline__", "always_inline", "__always_inline__",
      "const",       "pure",        "may_alias",    "maybe_unused",  "nodiscard",
      "fallthrough", "deprecated",  "likely",       "unlikely"};
  const auto is_harmless = [&](const cuda_token& word) {
    return word.is == cuda_token::kind::identifier &&
           std::find(harmless.begin(), harmless.end(), word.text) != harmless.end();
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const cuda_token& token = tokens[i];
    const auto refuse = [&](const std::string& message) {
      return source_problem{token.line, message};
    };
    const cuda_token* const next = i + 1 < tokens.size() ? &tokens[i + 1] : nullptr;
    // Lines are removed from the text after this check. Within a raw string, a removed line could
    // change where the string ends.
    if (token.is == cuda_token::kind::string && token.text.find('\n') != std::string_view::npos)
      return refuse("a raw string may not span lines on this device");
    const bool is_digraph = (token.text == "<" || token.text == "%") && next != nullptr &&
                            next->text == ":" && token.text.data() + 1 == next->text.data();
    if (is_digraph) return refuse("digraphs are not allowed");
    if (token.text == "[" && next != nullptr && next->text == "[") {
      for (std::size_t k = i + 2; k < tokens.size() && tokens[k].text != "]"; ++k) {
        if (tokens[k].text != "," && !is_harmless(tokens[k]))
          return refuse("attribute '" + std::string(tokens[k].text) + "' is not allowed");
      }
    }
    if (token.is != cuda_token::kind::identifier) continue;
    if (std::find(assembler.begin(), assembler.end(), token.text) != assembler.end())
      return refuse("inline assembler ('" + std::string(token.text) +
                    "') cannot be expressed on this device");
    if (token.text == "hone" || token.text.starts_with("hone_") || token.text.starts_with("__hone"))
      return refuse("names that begin with 'hone' are reserved");
    if (begins_attribute(token)) {
      int depth = 0;
      for (std::size_t k = i + 1; k < tokens.size(); ++k) {
        depth += tokens[k].text == "(" ? 1 : tokens[k].text == ")" ? -1 : 0;
        if (depth == 0) break;
        // An attribute within one ends the search, so that no token is looked at more than twice.
        if (tokens[k].is == cuda_token::kind::string || begins_attribute(tokens[k]) ||
            (tokens[k].is == cuda_token::kind::identifier && depth == 2 &&
             !is_harmless(tokens[k]))) {
          return refuse("attribute '" + std::string(tokens[k].text) + "' is not allowed");
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace hone
