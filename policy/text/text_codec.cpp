#include "policy/text/text_codec.hpp"

#include <algorithm>

#include "policy/decoder_config.hpp"
#include "policy/files.hpp"

namespace hone {

text_codec text_codec::load(const std::filesystem::path& folder, chat_format chat) {
  text_codec codec(tokenizer::load(folder / "tokenizer.json"), std::move(chat));
  const decoder_config config = decoder_config::load(folder / "config.json");
  const auto size = static_cast<std::int64_t>(codec.words_.vocabulary_size());
  if (size > config.vocabulary)
    throw policy_error(folder.string() + ": the tokenizer has " + std::to_string(size) +
                       " tokens, config.json's vocab_size is " + std::to_string(config.vocabulary));
  // A chat's answer ends with a token of the template, which a config may list behind others.
  const std::vector<token_id> end = codec.words_.encode(codec.chat_.end);
  if (!end.empty() && codec.words_.is_special(end.front())) codec.end_tokens_ = {end.front()};
  for (const std::int64_t id : config.end_tokens) {
    if (id < 0 || id >= config.vocabulary)
      throw policy_error(folder.string() + ": eos_token_id " + std::to_string(id) +
                         " is not below config.json's vocab_size");
    const auto token = static_cast<token_id>(id);
    if (std::find(codec.end_tokens_.begin(), codec.end_tokens_.end(), token) ==
        codec.end_tokens_.end())
      codec.end_tokens_.push_back(token);
  }
  if (codec.end_tokens_.empty())
    throw policy_error((folder / "config.json").string() +
                       ": eos_token_id: is missing; completions would never end");
  return codec;
}

std::vector<token_id> text_codec::encode_prompt(std::string_view text) const {
  if (!chat_.is_plain()) return words_.encode(chat_.around(std::string(text)));
  std::vector<token_id> tokens = words_.before_text();
  const std::vector<token_id> of_text = words_.encode(text);
  tokens.insert(tokens.end(), of_text.begin(), of_text.end());
  return tokens;
}

std::vector<token_id> text_codec::encode_answer(std::string_view text) const {
  std::vector<token_id> tokens = words_.encode(text);
  tokens.push_back(end_tokens_.front());
  return tokens;
}

}  // namespace hone
