#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/files.hpp"

namespace hone {

using token_id = std::uint32_t;

// A Hugging Face tokenizer.json: byte-level BPE, whose vocabulary may lack bytes, with
// pre-tokenization by regular expressions (PCRE2), NFC normalization (utf8proc) and added tokens.
// encode() returns the same ids as the Python package `tokenizers` with add_special_tokens=False.
// Immutable after loading; any number of threads may use it.
class tokenizer {
 public:
  // Throws policy_error, which names the file.
  static tokenizer load(const std::filesystem::path& tokenizer_json);
  ~tokenizer();
  tokenizer(tokenizer&&) noexcept;
  tokenizer& operator=(tokenizer&&) noexcept;

  // Returns the ids of a text. `text` may hold any bytes; U+FFFD replaces each byte that is not
  // part of valid UTF-8.
  std::vector<token_id> encode(std::string_view text) const;
  // Returns the bytes that the tokens stand for. Special tokens and unknown ids add no bytes.
  std::string decode(const std::vector<token_id>& tokens) const;

  // Returns the tokens that the post-processor puts in front of a text, such as that of a text's
  // beginning.
  const std::vector<token_id>& before_text() const;

  // Returns the largest id plus one.
  std::size_t vocabulary_size() const;
  // Returns the id of an added token or of a vocabulary entry, or -1 if there is none.
  std::int64_t id_of(std::string_view token) const;
  // Returns the text of a token as the vocabulary spells it; empty for an unknown id.
  std::string spelling(token_id id) const;
  // Returns how many of the 256 bytes have no token.
  std::size_t missing_bytes() const;
  // True of a token that controls the model and is no text.
  bool is_special(token_id id) const;

 private:
  struct state;
  explicit tokenizer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace hone
