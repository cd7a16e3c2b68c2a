#include "policy/tokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>
#include <variant>

namespace hone {
namespace {

using nlohmann::json;

// GPT-2's pattern, which ByteLevel applies itself when told to.
constexpr const char* gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string encode_utf8(std::uint32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(n)};
}

// Byte-level BPE writes every byte as a printable character (GPT-2's bytes_to_unicode).
std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> table;
  std::uint32_t next = 256;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174);
    table[b] = encode_utf8(printable ? b : next++);
  }
  return table;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  utf8proc_ssize_t at = 0;
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  while (at < size) {
    utf8proc_int32_t code_point = 0;
    const auto n = utf8proc_iterate(bytes + at, size - at, &code_point);
    if (n > 0) {
      out.append(text.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(n)));
      at += n;
    } else {
      out += "\xEF\xBF\xBD";
      ++at;
    }
  }
  return out;
}

struct free_code {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct free_match {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

class pattern {
 public:
  explicit pattern(const std::string& source) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
    if (code_ == nullptr) throw policy_error("the pattern '" + source + "' cannot be compiled, at character " + std::to_string(at));
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }
  // Calls visit(begin, end) for every match that is not empty, in order.
  template <class Visit>
  void each_match(std::string_view text, Visit visit) const {
    const std::unique_ptr<pcre2_match_data, free_match> match(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    std::size_t at = 0;
    while (at <= text.size()) {
      const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
      if (found < 0) return;
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
      if (bounds[1] > bounds[0]) visit(bounds[0], bounds[1]);
      at = bounds[1] > bounds[0] ? bounds[1] : bounds[1] + 1;
    }
  }

 private:
  std::unique_ptr<pcre2_code, free_code> code_;
};

std::string escape(const std::string& literal) {
  std::string out;
  for (const char c : literal) {
    if (std::string_view(R"(\.^$|()[]{}*+?)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Cuts text into pieces; what matches and what lies between either stays or goes.
struct splitter {
  pattern matches;
  bool keep_matches = true;
  bool keep_gaps = true;
};

using pieces = std::vector<std::string_view>;

pieces apply(const splitter& split, const pieces& input) {
  pieces out;
  for (const std::string_view piece : input) {
    std::size_t last = 0;
    split.matches.each_match(piece, [&](std::size_t begin, std::size_t end) {
      if (begin > last && split.keep_gaps) out.push_back(piece.substr(last, begin - last));
      if (split.keep_matches) out.push_back(piece.substr(begin, end - begin));
      last = end;
    });
    if (last < piece.size() && split.keep_gaps) out.push_back(piece.substr(last));
  }
  return out;
}

struct pair_hash {
  std::size_t operator()(const std::pair<token_id, token_id>& p) const noexcept { return (static_cast<std::size_t>(p.first) << 32U | p.second) * 0x9e3779b97f4a7c15U; }
};

struct merge {
  std::uint32_t rank;
  token_id result;
};

}  // namespace

struct tokenizer::state {
  std::unordered_map<std::string, token_id> vocabulary;
  std::vector<std::string> tokens;   // byte-level spelling, or an added token's text
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

  void encode_text(std::string_view text, std::vector<token_id>& out) const;
  std::vector<token_id> encode_piece(std::string_view piece) const;
};

namespace {

void read_model(const json& model, tokenizer::state& s);
void add_split(const std::string& source, bool keep_matches, bool keep_gaps, tokenizer::state& s);
void read_pre_tokenizer(const json& node, tokenizer::state& s);
void read_normalizer(const json& node, tokenizer::state& s);

}  // namespace

}  // namespace hone
