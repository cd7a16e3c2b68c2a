#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Reading a cuda block as text: what it includes, which kernels it has, and what it may not say. A
// lexer for C++ is enough, since the block has either been preprocessed or is only searched for
// directives.

struct cuda_token {
  enum class kind { identifier, number, string, character, punctuator };
  kind is;
  std::string_view text;
  int line;  // from 1, as the last line marker says
};

// Tokens of preprocessed text: no comments, no directives but line markers ('# 12 "cuda"') and
// pragmas, which are skipped.
std::vector<cuda_token> tokenize(std::string_view preprocessed);

// The includes that every device accepts, because what they declare is already there.
bool is_accepted_include(std::string_view name);

struct include_scan {
  std::string text;  // the block with accepted includes blanked; lines keep their numbers
  struct refused_include {
    int line;
    std::string name;
  };
  std::vector<refused_include> refused;
};

// Takes accepted includes out of a block that has not been preprocessed. Comments, strings and raw
// strings are respected.
include_scan take_out_includes(std::string_view block);

// The text without comments: blanks in their place, lines where they were. Strings are respected.
std::string blank_comments(std::string_view text);

// Takes those of CUDA's headers out that stand in front of everything else in the block and that
// are worth precompiling, in their order.
std::vector<std::string> take_out_leading_headers(include_scan& scan);

// Names of the functions that are declared __global__ (a macro must not have replaced the word).
std::set<std::string, std::less<>> declared_kernels(const std::vector<cuda_token>& tokens);

// Whether `launched` (a name, or a template's name with arguments) is one of the kernels, and safe
// to put into source text.
bool names_a_kernel(std::string_view launched, const std::set<std::string, std::less<>>& kernels);

struct source_problem {
  int line;
  std::string message;
};

// An include that take_out_includes() has not seen: a computed one, one with its line continued, or
// one spelt otherwise.
std::optional<source_problem> find_hidden_include(const include_scan& scan);

// Assembler in any spelling, attributes that reach the assembler or the linker, and words reserved
// for the harness.
std::optional<source_problem> find_forbidden(const std::vector<cuda_token>& tokens);

}  // namespace hone
