#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "messages/schema/variant.capnp.h"
#include "tasks/settings.hpp"

namespace hone {

inline constexpr std::size_t max_document_bytes = 256U << 10U;

// What a variant document says, its line ends normalised to LF. The blocks' first lines in the
// document (from 1; 0: absent) let diagnostics point at what the author wrote.
struct variant_document {
  std::string analysis;  // text under "## Performance Analysis", trimmed
  std::string design;    // text under "## Algorithm Design", trimmed
  settings options;
  std::string cuda;  // empty: no cuda block, a pure ATen rewrite
  std::string python;
  int cuda_line = 0;
  int python_line = 0;
};

// Why a text is no variant document.
struct parse_problem {
  int line = 0;  // from 1; 0 where it concerns the whole text
  std::string message;
};

// Parses as CommonMark does (cmark): headings and fences inside fences are text. Never throws for
// bad text.
std::variant<variant_document, parse_problem> parse_variant_document(std::string_view text);

// "line 12: message", or just the message.
std::string to_string(const parse_problem& problem);

// The document in its canonical form; parsing gives the same parts back. Fences are longer than any
// run of backticks inside.
std::string print_variant_document(const variant_document& document);

// The code section's blocks alone: what prompts show of an exemplar.
std::string print_code_blocks(const settings& options, std::string_view cuda,
                              std::string_view python);

// The identity of a program for a task: its code and settings, not the prose around them.
variant_id identify_variant(task_id task, const variant_document& document);
// The identity of a text that does not parse.
variant_id identify_unparsable(std::string_view text);

// The record of whatever the text is: the program, or the problem that it has.
record<schema::Variant> make_variant(task_id task, std::string_view text);

}  // namespace hone
