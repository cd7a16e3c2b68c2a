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

// A Hugging Face tokenizer.json: byte-level BPE, with pre-tokenisation by regular expressions
// (PCRE2), NFC normalisation (utf8proc) and added tokens. encode() gives what the `tokenizers`
// package gives without special tokens. Immutable after loading; safe on every thread.
class tokenizer {
 public:
  // Throws policy_error.
  static tokenizer load(const std::filesystem::path& tokenizer_json);
  ~tokenizer();
  tokenizer(tokenizer&&) noexcept;
  tokenizer& operator=(tokenizer&&) noexcept;

  // Any bytes: what is not valid UTF-8 is replaced by U+FFFD, as a JSON or Python string would have
  // it.
  std::vector<token_id> encode(std::string_view text) const;
  // The bytes that the tokens stand for; special tokens are left out, ids out of range are ignored.
  std::string decode(const std::vector<token_id>& tokens) const;

  std::size_t vocabulary_size() const;  // largest id plus one
  // The id of an added token or of a vocabulary entry, or -1.
  std::int64_t id_of(std::string_view token) const;

 private:
  struct state;
  explicit tokenizer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace hone
