#include "policy/text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "messages/plain_message.hpp"
#include "policy/text/added_tokens.hpp"
#include "policy/text/listed_tokens.hpp"
#include "policy/text/pair_merges.hpp"
#include "policy/text/pre_tokenizer.hpp"

namespace hone {
namespace {

using nlohmann::json;

}  // namespace

struct tokenizer::state {
  // A step of the pre-tokenizer: puts a space before each piece, cuts it, spells its bytes.
  struct step {
    std::optional<splitter> split{};
    bool prefix_space = false;
    bool spells_bytes = false;
  };

  std::unordered_map<std::string, token_id> vocabulary;
  std::vector<std::string> tokens;  // by id: byte-level spelling, or the text of an added token
  std::vector<bool> is_added;
  std::vector<bool> is_special;
  pair_merges merges;
  added_tokens added;             // found in a text as it is
  added_tokens added_normalized;  // found in the normalized text
  std::vector<step> steps;        // of the pre-tokenizer, in order
  std::array<std::string, 256> characters = byte_characters();
  std::array<std::optional<token_id>, 256> byte_tokens{};
  std::optional<token_id> unknown;    // represents a byte without a token; if absent, nothing does
  bool fuses_unknown = false;         // one such token represents a row of such bytes
  std::vector<token_id> before_text;  // of the post-processor
  std::unordered_map<std::string, unsigned char> bytes_of_characters;
  bool normalize = false;
  bool ignore_merges = false;
  mutable std::mutex cache_lock;
  mutable std::unordered_map<std::string, std::vector<token_id>> cache;

  void read(const json& file);
  void read_model(const json& model);
  void read_added_tokens(const json& list);
  void read_normalizer(const json& node);
  void read_pre_tokenizer(const json& node);
  void read_post_processor(const json& node);
  void add_split(const std::string& source, const std::string& behavior, bool invert);
  void set_token(token_id id, const std::string& text);

  void encode_text(std::string_view text, std::vector<token_id>& out) const;
  void encode_words(std::string_view piece, std::vector<token_id>& out) const;
  std::vector<token_id> encode_piece(std::string_view piece) const;
  std::vector<token_id> tokens_of_bytes(std::string_view piece) const;
  std::string spelled(std::string_view text) const;
  std::string bytes_of(std::string_view spelling) const;
};

void tokenizer::state::set_token(token_id id, const std::string& text) {
  if (id > 10000000)
    throw policy_error("token id " + std::to_string(id) + " is above the limit of 10000000");
  if (id >= tokens.size()) {
    tokens.resize(id + 1);
    is_added.resize(id + 1);
    is_special.resize(id + 1);
  }
  tokens[id] = text;
}

void tokenizer::state::read(const json& file) {
  read_model(file.at("model"));
  if (file.contains("normalizer")) read_normalizer(file.at("normalizer"));
  if (file.contains("added_tokens")) read_added_tokens(file.at("added_tokens"));
  const json before = file.value("pre_tokenizer", json());
  if (!before.is_null()) read_pre_tokenizer(before);
  if (std::none_of(steps.begin(), steps.end(), [](const step& s) { return s.spells_bytes; }))
    throw policy_error("pre_tokenizer: has no ByteLevel; only byte-level BPE is supported");
  if (file.contains("post_processor")) read_post_processor(file.at("post_processor"));
}

void tokenizer::state::read_model(const json& model) {
  if (model.value("type", "BPE") != "BPE")
    throw policy_error("a model of type " + model.value("type", "") + "; only BPE is supported");
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const json given = model.value(key, json());
    if (!given.is_null() && given != "" && given != 0)
      throw policy_error(std::string(key) + ": is " + given.dump() + ", and is not supported");
  }
  ignore_merges = model.contains("ignore_merges") && model.at("ignore_merges") == true;
  for (const auto& [text, id] : model.at("vocab").items()) {
    vocabulary[text] = id.get<token_id>();
    set_token(id.get<token_id>(), text);
  }
  for (const auto& entry : model.at("merges")) {
    std::string left;
    std::string right;
    if (entry.is_string()) {
      const std::string both = entry.get<std::string>();
      const std::size_t space = both.find(' ');
      if (space == std::string::npos)
        throw policy_error("merge " + std::to_string(merges.size()) + " is no pair");
      left = both.substr(0, space);
      right = both.substr(space + 1);
    } else {
      left = entry.at(0).get<std::string>();
      right = entry.at(1).get<std::string>();
    }
    const auto a = vocabulary.find(left);
    const auto b = vocabulary.find(right);
    const auto whole = vocabulary.find(left + right);
    if (a == vocabulary.end() || b == vocabulary.end() || whole == vocabulary.end())
      throw policy_error("merge " + std::to_string(merges.size()) +
                         " names a token that is not in the vocabulary");
    merges.add(a->second, b->second, whole->second);
  }
  for (std::size_t b = 0; b < 256; ++b) {
    const auto found = vocabulary.find(characters[b]);
    if (found != vocabulary.end()) byte_tokens[b] = found->second;
    bytes_of_characters[characters[b]] = static_cast<unsigned char>(b);
  }
  if (std::none_of(byte_tokens.begin(), byte_tokens.end(),
                   [](const auto& token) { return token.has_value(); }))
    throw policy_error(
        "the vocabulary has no token for any byte; only byte-level BPE is supported");
  if (model.value("byte_fallback", false) &&
      std::count(byte_tokens.begin(), byte_tokens.end(), std::nullopt) > 0)
    throw policy_error("byte_fallback: is true, and some bytes have no token");
  if (!model.contains("unk_token") || model.at("unk_token").is_null()) return;
  fuses_unknown = model.value("fuse_unk", false);
  const auto found = vocabulary.find(model.at("unk_token").get<std::string>());
  if (found != vocabulary.end()) {
    unknown = found->second;
  } else if (std::count(byte_tokens.begin(), byte_tokens.end(), std::nullopt) > 0) {
    throw policy_error("unk_token is not in the vocabulary");
  }
}

// The package `tokenizers` gives an added token the id that its text has already, or else the next
// free one, whatever the file says.
void tokenizer::state::read_added_tokens(const json& list) {
  auto next = static_cast<token_id>(vocabulary.size());
  for (const json& token : list) {
    const auto id = token.at("id").get<token_id>();
    const auto text = token.at("content").get<std::string>();
    const auto known = vocabulary.find(text);
    const token_id expected = known != vocabulary.end() ? known->second : next;
    if (id != expected)
      throw policy_error("added_tokens: '" + text + "' has the id " + std::to_string(id) +
                         ", expected " + std::to_string(expected) +
                         (known != vocabulary.end() ? ", as in the vocabulary" : ", the next one"));
    next = std::max(next, id + 1);
    set_token(id, text);
    is_added[id] = true;
    is_special[id] = token.value("special", false);
    vocabulary[text] = id;
    const bool is_normalized = token.value("normalized", false);
    if (is_normalized && normalize && normalized(text) != text)
      throw policy_error("added_tokens: '" + text + "' is not what the normalizer makes of it");
    auto& found_in = is_normalized ? added_normalized : added;
    found_in.add({text, id, token.value("lstrip", false), token.value("rstrip", false),
                  token.value("single_word", false)});
  }
}

void tokenizer::state::read_normalizer(const json& node) {
  if (node.is_null()) return;
  const std::string type = node.value("type", "");
  if (type == "NFC") {
    normalize = true;
  } else if (type == "Sequence") {
    for (const json& part : node.at("normalizers")) read_normalizer(part);
  } else {
    throw policy_error("a normalizer of type " + type + "; only NFC is supported");
  }
}

void tokenizer::state::add_split(const std::string& source, const std::string& behavior,
                                 bool invert) {
  const bool removed = behavior == "Removed";
  if (!removed && behavior != "Isolated")
    throw policy_error("a Split with behavior " + behavior +
                       "; Isolated and Removed are supported");
  steps.push_back({.split = splitter{pattern(source), !removed || invert, !removed || !invert}});
}

void tokenizer::state::read_pre_tokenizer(const json& node) {
  const std::string type = node.value("type", "");
  if (type == "Sequence") {
    for (const json& part : node.at("pretokenizers")) read_pre_tokenizer(part);
  } else if (type == "Split") {
    const json& given = node.at("pattern");
    add_split(given.contains("Regex") ? given.at("Regex").get<std::string>()
                                      : pattern::escape(given.at("String").get<std::string>()),
              node.at("behavior").get<std::string>(), node.value("invert", false));
  } else if (type == "Digits") {
    add_split(node.value("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", "Isolated", false);
  } else if (type == "ByteLevel") {
    if (std::any_of(steps.begin(), steps.end(), [](const step& s) { return s.spells_bytes; }))
      throw policy_error("a second pre-tokenizer of type ByteLevel is not supported");
    step made{.prefix_space = node.value("add_prefix_space", true), .spells_bytes = true};
    if (node.value("use_regex", true)) made.split = splitter{pattern(gpt2_pattern), true, true};
    steps.push_back(std::move(made));
  } else {
    throw policy_error("a pre-tokenizer of type " + type + " is not supported");
  }
}

void tokenizer::state::read_post_processor(const json& node) {
  if (node.is_null()) return;
  const std::string type = node.value("type", "");
  if (type == "Sequence") {
    for (const json& part : node.at("processors")) read_post_processor(part);
  } else if (type == "TemplateProcessing") {
    bool is_behind = false;
    for (const json& part : node.at("single")) {
      is_behind = is_behind || part.contains("Sequence");
      if (part.contains("Sequence")) continue;
      if (is_behind)
        throw policy_error("post_processor: adds a token behind a text, which ends it");
      const json& known =
          node.at("special_tokens").at(part.at("SpecialToken").at("id").get<std::string>());
      for (const json& id : known.at("ids")) before_text.push_back(id.get<token_id>());
    }
  } else if (type != "ByteLevel") {
    throw policy_error("a post-processor of type " + type + " is not supported");
  }
}

// Returns a token for each byte. Bytes without one become the unknown token or, if there is none,
// are left out, as in the Python package `tokenizers`.
std::vector<token_id> tokenizer::state::tokens_of_bytes(std::string_view piece) const {
  std::vector<token_id> ids;
  bool was_unknown = false;
  for (const char c : piece) {
    const auto& token = byte_tokens[static_cast<unsigned char>(c)];
    if (token) {
      ids.push_back(*token);
    } else if (unknown && !(was_unknown && fuses_unknown)) {
      ids.push_back(*unknown);
    }
    was_unknown = !token;
  }
  return ids;
}

std::vector<token_id> tokenizer::state::encode_piece(std::string_view piece) const {
  constexpr std::size_t max_cached = 50000;
  const std::lock_guard hold(cache_lock);
  if (const auto known = cache.find(std::string(piece)); known != cache.end()) return known->second;
  if (cache.size() >= max_cached) cache.clear();
  std::vector<token_id> ids;
  if (ignore_merges) {
    if (const auto whole = vocabulary.find(spelled(piece)); whole != vocabulary.end())
      ids = {whole->second};
  }
  if (ids.empty()) ids = merges.apply(tokens_of_bytes(piece));
  return cache.emplace(std::string(piece), std::move(ids)).first->second;
}

void tokenizer::state::encode_text(std::string_view raw, std::vector<token_id>& out) const {
  if (raw.empty()) return;
  const std::string text = normalize ? normalized(raw) : std::string(raw);
  cut_at(added_normalized, text, out,
         [this](std::string_view piece, std::vector<token_id>& to) { encode_words(piece, to); });
}

// Encodes a text without added tokens.
void tokenizer::state::encode_words(std::string_view piece, std::vector<token_id>& out) const {
  if (piece.empty()) return;
  std::deque<std::string> made;  // the texts of parts outside of `piece`
  std::vector<std::string_view> parts = {piece};
  bool is_spelled = false;
  for (const step& one : steps) {
    if (one.prefix_space) {
      for (std::string_view& part : parts) {
        if (!part.starts_with(' ')) part = made.emplace_back(" " + std::string(part));
      }
    }
    if (one.split) parts = cut(*one.split, parts);
    if (!one.spells_bytes || &one == &steps.back()) continue;
    is_spelled = true;  // later steps see the characters that stand for bytes
    for (std::string_view& part : parts) part = made.emplace_back(spelled(part));
  }
  for (const std::string_view part : parts) {
    const std::vector<token_id> ids = encode_piece(is_spelled ? bytes_of(part) : std::string(part));
    out.insert(out.end(), ids.begin(), ids.end());
  }
}

// Returns the characters that stand for the bytes of a text.
std::string tokenizer::state::spelled(std::string_view text) const {
  std::string made;
  for (const char c : text) made += characters[static_cast<unsigned char>(c)];
  return made;
}

std::string tokenizer::state::bytes_of(std::string_view spelling) const {
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    std::size_t end = at + 1;
    while (end < spelling.size() && (static_cast<unsigned char>(spelling[end]) & 0xC0U) == 0x80U)
      ++end;
    bytes += static_cast<char>(bytes_of_characters.at(std::string(spelling.substr(at, end - at))));
    at = end;
  }
  return bytes;
}

tokenizer::tokenizer(std::unique_ptr<state> s) : state_(std::move(s)) {}
tokenizer::~tokenizer() = default;
tokenizer::tokenizer(tokenizer&&) noexcept = default;
tokenizer& tokenizer::operator=(tokenizer&&) noexcept = default;

tokenizer tokenizer::load(const std::filesystem::path& path) {
  const std::string text = read_policy_json(path);
  auto s = std::make_unique<state>();
  try {
    s->read(json::parse(text));
  } catch (const json::exception& e) {
    throw policy_error(path.string() + ": cannot be read as a tokenizer.json: " + plain_message(e));
  } catch (const policy_error& e) {
    throw policy_error(path.string() + ": " + e.what());
  }
  tokenizer made(std::move(s));
  refuse_tokens_elsewhere(path.parent_path(), [&](std::string_view t) { return made.id_of(t); });
  return made;
}

std::vector<token_id> tokenizer::encode(std::string_view raw) const {
  std::vector<token_id> ids;
  cut_at(state_->added, valid_utf8(raw), ids,
         [this](std::string_view piece, std::vector<token_id>& to) {
           state_->encode_text(piece, to);
         });
  return ids;
}

const std::vector<token_id>& tokenizer::before_text() const { return state_->before_text; }

std::string tokenizer::decode(const std::vector<token_id>& ids) const {
  std::string out;
  for (const token_id id : ids) {
    if (id >= state_->tokens.size() || state_->is_special[id]) continue;
    const std::string& text = state_->tokens[id];
    if (state_->is_added[id]) {
      out += text;
      continue;
    }
    for (std::size_t at = 0; at < text.size();) {
      const auto lead = static_cast<unsigned char>(text[at]);
      const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      const std::string character = text.substr(at, length);
      const auto byte = state_->bytes_of_characters.find(character);
      if (byte != state_->bytes_of_characters.end()) {
        out += static_cast<char>(byte->second);
      } else {
        out += character;
      }
      at += length;
    }
  }
  return out;
}

std::size_t tokenizer::vocabulary_size() const { return state_->tokens.size(); }

std::int64_t tokenizer::id_of(std::string_view token) const {
  const auto found = state_->vocabulary.find(std::string(token));
  return found != state_->vocabulary.end() ? static_cast<std::int64_t>(found->second) : -1;
}

std::string tokenizer::spelling(token_id id) const {
  return id < state_->tokens.size() ? state_->tokens[id] : "";
}

std::size_t tokenizer::missing_bytes() const {
  return static_cast<std::size_t>(
      std::count(state_->byte_tokens.begin(), state_->byte_tokens.end(), std::nullopt));
}

bool tokenizer::is_special(token_id id) const {
  return id < state_->is_special.size() && state_->is_special[id];
}

}  // namespace hone
