#include "ui/code/highlight.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>
#include <utility>

#include "ui/html/characters.hpp"
#include "ui/html/numbers.hpp"

namespace hone {
namespace {

using html::element;
using word_set = std::unordered_set<std::string_view>;

constexpr std::size_t max_line_bytes = 4096;
constexpr std::size_t max_messages = 200;

bool is_keyword(std::string_view word, code_language language) {
  static const word_set cpp = {
      "alignas",  "alignof",  "asm",     "auto",       "break",       "case",
      "catch",    "class",    "const",   "const_cast", "constexpr",   "continue",
      "decltype", "default",  "delete",  "do",         "else",        "enum",
      "explicit", "extern",   "false",   "for",        "friend",      "goto",
      "if",       "inline",   "mutable", "namespace",  "new",         "noexcept",
      "nullptr",  "operator", "private", "protected",  "public",      "reinterpret_cast",
      "requires", "return",   "sizeof",  "static",     "static_cast", "struct",
      "switch",   "template", "this",    "throw",      "true",        "try",
      "typedef",  "typename", "union",   "using",      "virtual",     "volatile",
      "while"};
  static const word_set cuda = {
      "__global__",   "__device__",        "__host__",        "__shared__",   "__constant__",
      "__restrict__", "__launch_bounds__", "__forceinline__", "__noinline__", "threadIdx",
      "blockIdx",     "blockDim",          "gridDim",         "warpSize",     "__syncthreads"};
  static const word_set python = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "self", "try",    "while",  "with",     "yield"};
  if (language == code_language::python) return python.contains(word);
  return cpp.contains(word) || cuda.contains(word);
}

bool is_type(std::string_view word, code_language language) {
  static const word_set cuda = {
      "bool",    "char",   "double",   "float",   "half",          "int",           "long",
      "short",   "signed", "unsigned", "void",    "float2",        "float3",        "float4",
      "double2", "int2",   "int3",     "int4",    "uint2",         "uint3",         "uint4",
      "dim3",    "half2",  "__half",   "__half2", "__nv_bfloat16", "__nv_bfloat162"};
  static const word_set python = {"Tensor", "bool",  "dict", "float", "int",      "list",  "object",
                                  "str",    "tuple", "Dict", "List",  "Optional", "Tuple", "bytes"};
  if (language == code_language::python) return python.contains(word);
  return cuda.contains(word) || (word.size() > 2 && word.ends_with("_t"));
}

class lexer {
 public:
  lexer(std::string_view source, code_language language) : source_(source), language_(language) {}

  std::vector<code_token> run() {
    while (offset_ < source_.size()) step();
    return std::move(tokens_);
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  }

  // Returns the character at an offset from here, or NUL after the end.
  char peek(std::size_t ahead = 0) const {
    return offset_ + ahead < source_.size() ? source_[offset_ + ahead] : '\0';
  }
  bool at(std::string_view text) const { return source_.substr(offset_).starts_with(text); }

  void add(token_kind kind, std::size_t end) {
    tokens_.push_back({kind, offset_, end});
    offset_ = end;
  }

  // Returns the position after the next `closing`, or the end of the source.
  std::size_t end_after(std::string_view closing, std::size_t from) const {
    const std::size_t found = source_.find(closing, from);
    return found == source_.npos ? source_.size() : found + closing.size();
  }

  // Returns the end of a text between two equal quotes that may not span lines without a backslash.
  std::size_t end_of_quoted(std::size_t from, char quote) const {
    for (std::size_t i = from; i < source_.size(); ++i) {
      if (source_[i] == '\\') {
        ++i;
      } else if (source_[i] == '\n') {
        return i;
      } else if (source_[i] == quote) {
        return i + 1;
      }
    }
    return source_.size();
  }

  // Adds a string of Python whose quotes begin `prefix` bytes from here.
  void add_python_string(std::size_t prefix) {
    const std::size_t quotes = offset_ + prefix;
    const char quote = source_[quotes];
    const std::string triple(3, quote);
    if (!source_.substr(quotes).starts_with(triple)) {
      return add(token_kind::string, end_of_quoted(quotes + 1, quote));
    }
    std::size_t end = quotes + 3;
    while (end < source_.size() && !source_.substr(end).starts_with(triple)) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    add(token_kind::string, std::min(end + 3, source_.size()));
  }

  void add_raw_string(std::size_t prefix) {
    const std::size_t delimiter = offset_ + prefix + 1;
    const std::size_t open = source_.substr(0, delimiter + 17).find('(', delimiter);
    if (open == source_.npos) return add(token_kind::string, end_of_quoted(delimiter, '"'));
    const std::string closing =
        ")" + std::string(source_.substr(delimiter, open - delimiter)) + "\"";
    add(token_kind::string, end_after(closing, open));
  }

  void add_word() {
    std::size_t end = offset_;
    while (end < source_.size() && is_word(source_[end])) ++end;
    const std::string_view word = source_.substr(offset_, end - offset_);
    const char next = end < source_.size() ? source_[end] : '\0';
    if (language_ == code_language::python && (next == '"' || next == '\'') && word.size() <= 2 &&
        word.find_first_not_of("rRbBfFuU") == word.npos) {
      return add_python_string(word.size());
    }
    if (language_ == code_language::cuda && next == '"' && word.size() <= 3 &&
        word.ends_with('R')) {
      return add_raw_string(word.size());
    }
    if (is_keyword(word, language_)) return add(token_kind::keyword, end);
    if (is_type(word, language_)) return add(token_kind::type, end);
    offset_ = end;
  }

  void add_number() {
    std::size_t end = offset_;
    while (end < source_.size()) {
      const char c = source_[end];
      const bool is_sign = (c == '+' || c == '-') && (source_[end - 1] | 0x20) == 'e';
      const bool is_separator = c == '\'' && language_ == code_language::cuda &&
                                end + 1 < source_.size() && is_word(source_[end + 1]);
      if (!is_word(c) && c != '.' && !(is_sign && end > offset_) && !is_separator) break;
      ++end;
    }
    add(token_kind::number, end);
  }

  void add_directive() {
    std::size_t end = source_.find_first_not_of(" \t", offset_ + 1);
    end = std::min(end, source_.size());
    while (end < source_.size() && is_word(source_[end])) ++end;
    const bool is_include = source_.substr(offset_, end - offset_).ends_with("include");
    add(token_kind::preprocessor, end);
    while (is_include && (peek() == ' ' || peek() == '\t')) ++offset_;
    if (is_include && peek() == '<') add(token_kind::string, end_of_quoted(offset_ + 1, '>'));
  }

  void step() {
    const char c = peek();
    const bool is_cuda = language_ == code_language::cuda;
    const bool begins_line = is_line_start_;
    if (c != ' ' && c != '\t') is_line_start_ = c == '\n';
    if (is_cuda ? at("//") : c == '#') {
      const std::size_t end = source_.find('\n', offset_);
      add(token_kind::comment, std::min(end, source_.size()));
    } else if (is_cuda && at("/*")) {
      add(token_kind::comment, end_after("*/", offset_ + 2));
    } else if (c == '#' && begins_line) {
      add_directive();
    } else if (c == '@' && begins_line && !is_cuda) {
      std::size_t end = offset_ + 1;
      while (end < source_.size() && (is_word(source_[end]) || source_[end] == '.')) ++end;
      add(token_kind::preprocessor, end);
    } else if (c == '"' || c == '\'') {
      if (is_cuda) {
        add(token_kind::string, end_of_quoted(offset_ + 1, c));
      } else {
        add_python_string(0);
      }
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      add_number();
    } else if (is_word(c)) {
      add_word();
    } else {
      ++offset_;
    }
  }

  std::string_view source_;
  code_language language_;
  std::size_t offset_ = 0;
  bool is_line_start_ = true;
  std::vector<code_token> tokens_;
};

std::string token_class(token_kind kind) {
  constexpr std::array names = {"", "k", "t", "n", "s", "c", "p"};
  return names[static_cast<std::size_t>(kind)];
}

// Returns the messages that are shown, in the order of their lines.
std::vector<line_message> shown_messages(std::vector<line_message> messages) {
  std::stable_sort(messages.begin(), messages.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  // Lines count from 1, and a message of line 0 belongs to none.
  const auto first_of_lines =
      std::find_if(messages.begin(), messages.end(), [](const auto& m) { return m.line > 0; });
  std::rotate(messages.begin(), first_of_lines, messages.end());
  if (messages.size() > max_messages) messages.resize(max_messages);
  return messages;
}

element message_line(std::string_view prefix, std::string_view message) {
  const shown_line shown = shown_part(message);
  element line("span", {{"class", "message"}}, {html::text(prefix), html::text(shown.text)});
  if (shown.hidden_bytes > 0) line.add(hidden_note(shown.hidden_bytes));
  line.add(html::text("\n"));
  return line;
}

// Returns a line of a source with its tokens. Skips those of `tokens_left` that end before it.
element colored_line(std::string_view source, std::string_view line,
                     std::span<const code_token>& tokens_left) {
  const shown_line shown = shown_part(line);
  std::size_t offset = static_cast<std::size_t>(line.data() - source.data());
  const std::size_t end = offset + shown.text.size();
  element content("span", {{"class", "source"}});
  while (!tokens_left.empty() && tokens_left.front().end <= offset) {
    tokens_left = tokens_left.subspan(1);
  }
  for (const code_token& token : tokens_left) {
    if (token.begin >= end) break;
    const std::size_t begin = std::max(offset, token.begin);
    const std::size_t token_end = std::min(end, token.end);
    if (begin > offset) content.add(html::text(source.substr(offset, begin - offset)));
    content.add(element("span", {{"class", token_class(token.kind)}},
                        {html::text(source.substr(begin, token_end - begin))}));
    offset = token_end;
  }
  if (end > offset) content.add(html::text(source.substr(offset, end - offset)));
  if (shown.hidden_bytes > 0) content.add(hidden_note(shown.hidden_bytes));
  content.add(html::text("\n"));
  return content;
}

element numbered_line(const std::string& anchor_prefix, std::size_t line, element content) {
  const std::string number = std::to_string(line);
  const std::string id = anchor_prefix + number;
  return element("span", {{"class", "line"}, {"id", id}},
                 {element("a", {{"class", "number"}, html::href(html::url().fragment(id))},
                          {html::text(number)}),
                  std::move(content)});
}

// Returns "… 12 more THINGS".
element cut_note(std::size_t count, std::string_view things) {
  return element("span", {{"class", "cut"}},
                 {html::text("… " + count_text(count) + " more " + std::string(things) + "\n")});
}

}  // namespace

std::vector<code_token> tokens_of(std::string_view source, code_language language) {
  return lexer(source, language).run();
}

shown_line shown_part(std::string_view line) {
  const std::string_view shown = html::first_bytes(line, max_line_bytes);
  return {shown, line.size() - shown.size()};
}

element hidden_note(std::size_t bytes) {
  return element("span", {{"class", "cut"}},
                 {html::text(" … " + count_text(bytes) + " more bytes")});
}

std::vector<std::string_view> lines_of_code(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (end < text.size() && line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

element highlighted_code(std::string_view source, const code_options& options) {
  const std::vector<std::string_view> lines = lines_of_code(source);
  std::size_t shown_lines = std::min(lines.size(), options.max_lines);
  // Later lines do not affect the tokens of earlier ones, so hidden lines are not read.
  const std::size_t end_of_shown =
      shown_lines < lines.size()
          ? static_cast<std::size_t>(lines[shown_lines].data() - source.data())
          : source.size();
  const std::vector<code_token> tokens =
      tokens_of(source.substr(0, end_of_shown), options.language);
  std::span<const code_token> tokens_left = tokens;
  const std::vector<line_message> messages = shown_messages(options.messages);
  auto message = messages.begin();
  std::size_t bytes = 0;
  element code("pre", {{"class", "code"}});
  for (std::size_t i = 0; i < shown_lines; ++i) {
    element line =
        numbered_line(options.anchor_prefix, i + 1, colored_line(source, lines[i], tokens_left));
    bytes += line.str().size();
    if (bytes > options.max_bytes) shown_lines = i + 1;
    code.add(std::move(line));
    for (; message != messages.end() && message->line == i + 1; ++message) {
      code.add(message_line("", message->text));
    }
  }
  if (shown_lines < lines.size()) code.add(cut_note(lines.size() - shown_lines, "lines"));
  for (; message != messages.end(); ++message) {
    code.add(message_line(message->line > 0 ? "line " + count_text(message->line) + ": " : "",
                          message->text));
  }
  if (options.messages.size() > messages.size()) {
    code.add(cut_note(options.messages.size() - messages.size(), "messages"));
  }
  return code;
}

}  // namespace hone
