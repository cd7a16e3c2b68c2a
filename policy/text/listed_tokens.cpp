#include "policy/text/listed_tokens.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "messages/plain_message.hpp"
#include "policy/files.hpp"

namespace hone {
namespace {

using nlohmann::json;

// Compares the tokens of one file with those of tokenizer.json.
class token_list {
 public:
  token_list(std::filesystem::path file, const std::function<std::int64_t(std::string_view)>& id_of)
      : file_(std::move(file)), id_of_(id_of) {
    if (!std::filesystem::exists(file_)) return;
    try {
      values_ = json::parse(read_policy_json(file_));
    } catch (const json::exception& e) {
      throw policy_error(file_.string() + ": is no JSON: " + plain_message(e));
    }
    if (!values_.is_object()) throw policy_error(file_.string() + ": is no JSON object");
  }

  // {"<token>": 5}
  void check_ids() const {
    for (const auto& [token, id] : values_.items()) check(token, json(token), id);
  }
  // {"added_tokens_decoder": {"5": {"content": "<token>"}}}
  void check_decoder() const {
    const auto listed = values_.find("added_tokens_decoder");
    if (listed == values_.end() || !listed->is_object()) return;
    for (const auto& [id, token] : listed->items())
      check("added_tokens_decoder", token, json::parse(id, nullptr, false));
  }
  // {"eos_token": "<token>", "additional_special_tokens": ["<token>"]}
  void check_named() const {
    for (const auto& [key, value] : values_.items()) {
      if (key.ends_with("_token")) check(key, value, json());
      if (key != "additional_special_tokens" && key != "extra_special_tokens") continue;
      if (!value.is_structured()) continue;
      for (const auto& [name, token] : value.items()) check(key, token, json());
    }
  }

 private:
  void check(const std::string& key, const json& token, const json& id) const {
    const json content = token.is_object() && token.contains("content") ? token["content"] : token;
    if (!content.is_string()) return;  // null: there is none; true or false: a setting
    const std::string text = content.get<std::string>();
    const std::int64_t known = id_of_(text);
    if (known < 0)
      throw policy_error(file_.string() + ": " + key + ": '" + text +
                         "' is no token of tokenizer.json; save the tokenizer again with "
                         "transformers, which writes it there, or remove it here");
    if (id.is_number_integer() && id != known)
      throw policy_error(file_.string() + ": " + key + ": '" + text + "' has the id " + id.dump() +
                         ", and " + std::to_string(known) + " in tokenizer.json");
  }

  std::filesystem::path file_;
  const std::function<std::int64_t(std::string_view)>& id_of_;
  json values_ = json::object();
};

}  // namespace

void refuse_tokens_elsewhere(const std::filesystem::path& folder,
                             const std::function<std::int64_t(std::string_view)>& id_of) {
  const token_list settings(folder / "tokenizer_config.json", id_of);
  settings.check_decoder();
  settings.check_named();
  token_list(folder / "special_tokens_map.json", id_of).check_named();
  token_list(folder / "added_tokens.json", id_of).check_ids();
}

}  // namespace hone
