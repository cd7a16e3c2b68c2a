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

// A parsed variant document, with its line ends normalized to LF.
struct variant_document {
  std::string analysis;  // text under "## Performance Analysis", trimmed
  std::string design;    // text under "## Algorithm Design", trimmed
  settings options;
  std::string cuda;  // empty: no cuda block, a pure ATen rewrite
  std::string python;
  // Lines of the document, from 1, on which the texts of the blocks begin, so that diagnostics can
  // name lines of the document. 0: there is no such block.
  int cuda_line = 0;
  int python_line = 0;
};

// The reason why a text is not a variant document.
struct parse_problem {
  int line = 0;  // from 1; 0 if the problem concerns the whole text
  std::string message;
};

// Parses a variant document as CommonMark (with cmark): headings and fences inside of fences are
// text. Returns the problem of a text that does not parse, and never throws for such a text.
std::variant<variant_document, parse_problem> parse_variant_document(std::string_view text);

// Prints a problem as "line 12: message", or as the message alone if it has no line.
std::string to_string(const parse_problem& problem);

// Prints a document in its canonical form, which parses back to the same parts. Every fence is
// longer than any run of backticks in its block.
std::string print_variant_document(const variant_document& document);

// Prints a Python module as the document of a variant.
std::string document_of_module(std::string_view module);

// Prints the blocks of the code section alone, as prompts show them for an exemplar.
std::string print_code_blocks(const settings& options, std::string_view cuda,
                              std::string_view python);

// Returns the id of a variant: a hash of the task's id, the settings and the code, but not of the
// prose around them.
variant_id identify_variant(task_id task, const variant_document& document);
// Returns the id of a text that does not parse: a hash of the whole text.
variant_id identify_unparsable(std::string_view text);

// Returns the record of a document: the program, or the problem if the text does not parse. Never
// throws for bad text.
record<schema::Variant> make_variant(task_id task, std::string_view text);

}  // namespace hone
