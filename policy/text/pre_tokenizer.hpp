#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

// Pre-tokenization: the steps of a Hugging Face tokenizer.json that cut a text into pieces before
// byte pairs are merged.

// Returns `text` with U+FFFD instead of each byte that is not part of valid UTF-8.
std::string valid_utf8(std::string_view text);
std::string encode_utf8(std::uint32_t code_point);
// Returns the printable character that byte-level BPE writes for each byte, in UTF-8 (GPT-2's
// bytes_to_unicode).
std::array<std::string, 256> byte_characters();
// Returns the text in the normalization form NFC.
std::string normalized(std::string_view text);

// GPT-2's pattern, which a ByteLevel pre-tokenizer applies if its `use_regex` is set.
extern const char* const gpt2_pattern;

// A PCRE2 expression over UTF-8. Immutable; copies share the compiled expression, and any number of
// threads may use it.
class pattern {
 public:
  // Compiles the expression. Throws policy_error if it is invalid, or if it could match otherwise
  // than with Oniguruma, which the package `tokenizers` uses.
  explicit pattern(const std::string& source);
  // Returns an expression that matches only `literal`.
  static std::string escape(const std::string& literal);
  // Returns [begin, end) in bytes of every match, in order. `text` must be valid UTF-8. Throws
  // policy_error if the search needs more steps than max_steps.
  std::vector<std::pair<std::size_t, std::size_t>> matches(std::string_view text) const;

 private:
  struct code;
  std::shared_ptr<const code> code_;
};

// A rule that cuts text at the matches of a pattern and keeps the matches, the gaps between them,
// or both as pieces.
struct splitter {
  pattern at;
  bool keep_matches = true;
  bool keep_gaps = true;
};

// Applies a rule to each piece. Returns views into the same text, in order.
std::vector<std::string_view> cut(const splitter& split,
                                  const std::vector<std::string_view>& pieces);

}  // namespace hone
