#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ui/html/element.hpp"

namespace hone {

enum class code_language { cuda, python };

enum class token_kind { plain, keyword, type, number, string, comment, preprocessor };

// A piece of a source; plain pieces are those between the others.
struct code_token {
  token_kind kind;
  std::size_t begin;  // bytes
  std::size_t end;
};

// Splits a source into tokens that are not plain, in order, without overlaps and without cutting a
// character of UTF-8. Any bytes are a source: a string that is not terminated ends at the end of
// its line, or of the source if it may span lines, as a comment does. Takes linear time.
std::vector<code_token> tokens_of(std::string_view source, code_language language);

// A message about a line, such as a compiler's.
struct line_message {
  std::size_t line;  // from 1
  std::string text;
};

struct code_options {
  code_language language = code_language::cuda;
  std::string anchor_prefix = "L";  // of the lines' ids: "L12"
  std::size_t max_lines = 2000;
  std::vector<line_message> messages;
  std::size_t max_bytes =
      1U << 20U;  // of HTML, which markers make many times as long as the source
};

// Returns a source with numbered and colored lines, each followed by its messages; messages of
// lines that are not shown come last. Says how many lines after `max_lines`, how many bytes of a
// line after 4 KiB and how many messages after 200 are not shown; no line begins after `max_bytes`.
// Thread-safe.
html::element highlighted_code(std::string_view source, const code_options& options);

// The part of a line that is shown, and how much is not.
struct shown_line {
  std::string_view text;
  std::size_t hidden_bytes;
};
shown_line shown_part(std::string_view line);

// Returns the note about hidden bytes.
html::element hidden_note(std::size_t bytes);

// Splits a text into lines without their ends "\n" or "\r\n". An end at the end of the text begins
// no line.
std::vector<std::string_view> lines_of_code(std::string_view text);

}  // namespace hone
