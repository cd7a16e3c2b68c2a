#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "policy/text/chat_format.hpp"
#include "policy/text/tokenizer.hpp"

namespace hone {

// Turns the prompts and answers of a policy into tokens and back: the tokenizer, with what the
// policy was trained to see around a prompt and to write behind an answer. Immutable after
// loading; any number of threads may use it.
class text_codec {
 public:
  // Reads tokenizer.json and the end tokens of a Hugging Face folder (generation_config.json, or
  // config.json). Throws policy_error if there is no end token, or if an id is not below the
  // vocab_size of config.json.
  static text_codec load(const std::filesystem::path& folder, chat_format chat);

  // Returns the tokens of a prompt in the chat format or, for a policy that continues plain text,
  // behind the token of a text's beginning if the tokenizer has one.
  std::vector<token_id> encode_prompt(std::string_view text) const;
  // Returns the tokens of an answer, the token that ends it included.
  std::vector<token_id> encode_answer(std::string_view text) const;
  // Returns the text of an answer. Special tokens add nothing.
  std::string decode(const std::vector<token_id>& tokens) const { return words_.decode(tokens); }

  // Returns the tokens that end a completion. The first one is that of encode_answer().
  const std::vector<token_id>& end_tokens() const { return end_tokens_; }
  const chat_format& chat() const { return chat_; }
  const tokenizer& words() const { return words_; }

 private:
  text_codec(tokenizer words, chat_format chat)
      : words_(std::move(words)), chat_(std::move(chat)) {}

  tokenizer words_;
  chat_format chat_;
  std::vector<token_id> end_tokens_;
};

}  // namespace hone
