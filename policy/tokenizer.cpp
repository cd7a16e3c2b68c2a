#include "policy/tokenizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>
#include <utility>

#include "policy/pre_tokenizer.hpp"

namespace hone {
namespace {

using nlohmann::json;

// Returns the printable character that byte-level BPE writes for each byte, in UTF-8 (GPT-2's
// bytes_to_unicode).
std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> table;
  std::uint32_t next = 256;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174);
    table[b] = encode_utf8(printable ? b : next++);
  }
  return table;
}

struct pair_hash {
  std::size_t operator()(const std::pair<token_id, token_id>& p) const noexcept {
    return (static_cast<std::size_t>(p.first) << 32U | p.second) * 0x9e3779b97f4a7c15U;
  }
};

struct merge {
  std::uint32_t rank;
  token_id result;
};

}  // namespace

struct tokenizer::state {
  std::unordered_map<std::string, token_id> vocabulary;
  std::vector<std::string> tokens;  // by id: byte-level spelling, or the text of an added token
  std::vector<bool> is_added;
  std::vector<bool> is_special;
  std::unordered_map<std::pair<token_id, token_id>, merge, pair_hash> merges;
  std::vector<std::pair<std::string, token_id>> added;  // longest first
  std::vector<splitter> splits;
  std::array<std::string, 256> characters = byte_characters();
  std::array<token_id, 256> byte_tokens{};
  std::unordered_map<std::string, unsigned char> bytes_of_characters;
  bool normalise = false;
  bool prefix_space = false;
  bool ignore_merges = false;
  mutable std::mutex cache_lock;
  mutable std::unordered_map<std::string, std::vector<token_id>> cache;

  void read_model(const json& model);
  void read_added_tokens(const json& list);
  void read_normalizer(const json& node);
  void read_pre_tokenizer(const json& node);
  void add_split(const std::string& source, const std::string& behavior, bool invert);
  void set_token(token_id id, const std::string& text);

  void encode_text(std::string_view text, std::vector<token_id>& out) const;
  const std::vector<token_id>& encode_piece(std::string_view piece) const;
  std::vector<token_id> merge_piece(std::string_view piece) const;
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

void tokenizer::state::read_model(const json& model) {
  if (model.value("type", "BPE") != "BPE")
    throw policy_error("a model of type " + model.value("type", "") + "; only BPE is supported");
  ignore_merges = model.value("ignore_merges", false);
  for (const auto& [text, id] : model.at("vocab").items()) {
    vocabulary[text] = id.get<token_id>();
    set_token(id.get<token_id>(), text);
  }
  std::uint32_t rank = 0;
  for (const auto& entry : model.at("merges")) {
    std::string left;
    std::string right;
    if (entry.is_string()) {
      const std::string both = entry.get<std::string>();
      const std::size_t space = both.find(' ');
      if (space == std::string::npos)
        throw policy_error("merge " + std::to_string(rank) + " is no pair");
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
      throw policy_error("merge " + std::to_string(rank) +
                         " names a token that is not in the vocabulary");
    merges.emplace(std::pair{a->second, b->second}, merge{rank++, whole->second});
  }
  for (std::size_t b = 0; b < 256; ++b) {
    const auto found = vocabulary.find(characters[b]);
    if (found == vocabulary.end())
      throw policy_error("the vocabulary has no token for the byte " + std::to_string(b) +
                         "; only byte-level BPE is supported");
    byte_tokens[b] = found->second;
    bytes_of_characters[characters[b]] = static_cast<unsigned char>(b);
  }
}

void tokenizer::state::read_added_tokens(const json& list) {
  for (const json& token : list) {
    const auto id = token.at("id").get<token_id>();
    const auto text = token.at("content").get<std::string>();
    set_token(id, text);
    is_added[id] = true;
    is_special[id] = token.value("special", false);
    vocabulary[text] = id;
    if (!text.empty()) added.emplace_back(text, id);
  }
  std::sort(added.begin(), added.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

void tokenizer::state::read_normalizer(const json& node) {
  if (node.is_null()) return;
  const std::string type = node.value("type", "");
  if (type == "NFC") {
    normalise = true;
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
  splits.push_back({pattern(source), !removed || invert, !removed || !invert});
}

void tokenizer::state::read_pre_tokenizer(const json& node) {
  if (node.is_null()) return;
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
    prefix_space = prefix_space || node.value("add_prefix_space", true);
    if (node.value("use_regex", true)) add_split(gpt2_pattern, "Isolated", false);
  } else {
    throw policy_error("a pre-tokenizer of type " + type + " is not supported");
  }
}

// Applies the merge of the lowest rank first and the leftmost among equals, as the Python package
// `tokenizers` does.
std::vector<token_id> tokenizer::state::merge_piece(std::string_view piece) const {
  struct symbol {
    token_id id;
    int previous;
    int next;
  };
  std::vector<symbol> symbols;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    symbols.push_back({byte_tokens[static_cast<unsigned char>(piece[i])], static_cast<int>(i) - 1,
                       i + 1 < piece.size() ? static_cast<int>(i) + 1 : -1});
  }
  struct candidate {
    std::uint32_t rank;
    int left;
    token_id a, b, result;
    bool operator>(const candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  std::priority_queue<candidate, std::vector<candidate>, std::greater<>> candidates;
  const auto consider = [&](int left) {
    if (left < 0 || symbols[static_cast<std::size_t>(left)].next < 0) return;
    const token_id a = symbols[static_cast<std::size_t>(left)].id;
    const token_id b =
        symbols[static_cast<std::size_t>(symbols[static_cast<std::size_t>(left)].next)].id;
    if (const auto found = merges.find({a, b}); found != merges.end())
      candidates.push({found->second.rank, left, a, b, found->second.result});
  };
  constexpr token_id gone = ~token_id{0};
  for (int i = 0; i < static_cast<int>(symbols.size()); ++i) consider(i);
  while (!candidates.empty()) {
    const candidate best = candidates.top();
    candidates.pop();
    symbol& left = symbols[static_cast<std::size_t>(best.left)];
    if (left.id != best.a || left.next < 0 ||
        symbols[static_cast<std::size_t>(left.next)].id != best.b)
      continue;  // a later merge has consumed one of the two symbols
    symbol& right = symbols[static_cast<std::size_t>(left.next)];
    left.id = best.result;
    left.next = right.next;
    right.id = gone;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.left;
    consider(best.left);
    consider(left.previous);
  }
  std::vector<token_id> ids;
  for (const symbol& s : symbols) {
    if (s.id != gone) ids.push_back(s.id);
  }
  return ids;
}

const std::vector<token_id>& tokenizer::state::encode_piece(std::string_view piece) const {
  constexpr std::size_t max_cached = 50000;
  const std::lock_guard hold(cache_lock);
  if (const auto known = cache.find(std::string(piece)); known != cache.end()) return known->second;
  if (cache.size() >= max_cached) cache.clear();
  std::vector<token_id> ids;
  if (ignore_merges) {
    std::string spelled;
    for (const char c : piece) spelled += characters[static_cast<unsigned char>(c)];
    if (const auto whole = vocabulary.find(spelled); whole != vocabulary.end())
      ids = {whole->second};
  }
  if (ids.empty()) ids = merge_piece(piece);
  return cache.emplace(std::string(piece), std::move(ids)).first->second;
}

void tokenizer::state::encode_text(std::string_view raw, std::vector<token_id>& out) const {
  if (raw.empty()) return;
  std::string text(raw);
  if (normalise) {
    utf8proc_uint8_t* normal =
        utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
    if (normal != nullptr) text = reinterpret_cast<const char*>(normal);
    std::free(normal);
  }
  if (prefix_space && !text.starts_with(' ')) text = " " + text;
  std::vector<std::string_view> parts = {text};
  for (const splitter& split : splits) parts = cut(split, parts);
  for (const std::string_view part : parts) {
    const auto& ids = encode_piece(part);
    out.insert(out.end(), ids.begin(), ids.end());
  }
}

tokenizer::tokenizer(std::unique_ptr<state> s) : state_(std::move(s)) {}
tokenizer::~tokenizer() = default;
tokenizer::tokenizer(tokenizer&&) noexcept = default;
tokenizer& tokenizer::operator=(tokenizer&&) noexcept = default;

tokenizer tokenizer::load(const std::filesystem::path& path) {
  const std::string text = read_policy_file(path);
  try {
    const json file = json::parse(text);
    auto s = std::make_unique<state>();
    s->read_model(file.at("model"));
    if (file.contains("added_tokens")) s->read_added_tokens(file.at("added_tokens"));
    if (file.contains("normalizer")) s->read_normalizer(file.at("normalizer"));
    if (file.contains("pre_tokenizer")) s->read_pre_tokenizer(file.at("pre_tokenizer"));
    return tokenizer(std::move(s));
  } catch (const json::exception& e) {
    throw policy_error(path.string() + ": cannot be read as a tokenizer.json: " + e.what());
  } catch (const policy_error& e) {
    throw policy_error(path.string() + ": " + e.what());
  }
}

std::vector<token_id> tokenizer::encode(std::string_view raw) const {
  const std::string text = valid_utf8(raw);
  std::vector<token_id> ids;
  std::size_t begin = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto found =
        std::find_if(state_->added.begin(), state_->added.end(), [&](const auto& token) {
          return std::string_view(text).substr(at).starts_with(token.first);
        });
    if (found == state_->added.end()) {
      ++at;
      continue;
    }
    state_->encode_text(std::string_view(text).substr(begin, at - begin), ids);
    ids.push_back(found->second);
    at += found->first.size();
    begin = at;
  }
  state_->encode_text(std::string_view(text).substr(begin), ids);
  return ids;
}

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

}  // namespace hone
