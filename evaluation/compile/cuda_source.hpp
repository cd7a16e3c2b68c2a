#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Analysis of a cuda block as text: its includes, its kernels, and the constructs that it must not
// contain. A lexer for C++ is enough, because the text is either preprocessed or only searched for
// directives. The text is hostile and the functions run in the judge's process, without a deadline:
// all of them take time linear in the text's length, and patterns are RE2's. Safe on any thread.

struct cuda_token {
  enum class kind { identifier, number, string, character, punctuator };
  kind is;
  std::string_view text;
  int line;  // from 1, by the last line marker
};

// Returns the tokens of preprocessed text, which has no comments and no directives except line
// markers ('# 12 "cuda"') and pragmas. Both are skipped. The tokens refer to `preprocessed`.
std::vector<cuda_token> tokenize(std::string_view preprocessed);

// Returns true for the includes that every device accepts, because their declarations are already
// there.
bool is_accepted_include(std::string_view name);

struct include_scan {
  // The block with accepted includes blanked; lines keep their numbers.
  std::string text;
  struct refused_include {
    int line;
    std::string name;
  };
  std::vector<refused_include> refused;
};

// Blanks the accepted includes of a block that has not been preprocessed, and lists all others.
// Comments, strings and raw strings are respected.
include_scan take_out_includes(std::string_view block);

// Returns the text with blanks instead of comments; lines keep their numbers. Strings are
// respected.
std::string blank_comments(std::string_view text);

// Removes those of CUDA's headers that precede everything else in the block and that are worth
// precompiling. Returns their names in order.
std::vector<std::string> take_out_leading_headers(include_scan& scan);

// Returns the names of the functions that are declared __global__. No macro may have replaced that
// word.
std::set<std::string, std::less<>> declared_kernels(const std::vector<cuda_token>& tokens);

// Reduces the name of a launched kernel to its function's: "inner::tiled<16>" to "tiled".
std::string kernel_base_name(std::string_view launched);

// Returns true if `launched` (a name, or a template's name with arguments) is one of the kernels
// and is safe to insert into source text.
bool names_a_kernel(std::string_view launched, const std::set<std::string, std::less<>>& kernels);

struct source_problem {
  int line;
  std::string message;
};

// Finds an include that take_out_includes() does not see: a computed one, one with a continued
// line, or one in another spelling.
std::optional<source_problem> find_hidden_include(const include_scan& scan);

// Finds assembler in any spelling, attributes that reach the assembler or the linker, and words
// reserved for Hone.
std::optional<source_problem> find_forbidden(const std::vector<cuda_token>& tokens);

}  // namespace hone
