#include "policy/text/added_tokens.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

namespace hone {
namespace {

// Returns the code point that begins at `at`, and its length in bytes.
std::pair<utf8proc_int32_t, std::size_t> character_at(std::string_view text, std::size_t at) {
  utf8proc_int32_t code_point = 0;
  const auto length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                       static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
  return {code_point, static_cast<std::size_t>(std::max<utf8proc_ssize_t>(length, 1))};
}

// Returns where the character before `at` begins. `at` must be above 0.
std::size_t begin_of_character_before(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
  return at;
}

// The property White_Space of Unicode.
bool is_space(utf8proc_int32_t c) {
  const auto category = utf8proc_category(c);
  return (c >= 9 && c <= 13) || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

// What \w of regular expressions matches.
bool is_of_word(utf8proc_int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

bool adjoins_a_word(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 &&
          is_of_word(character_at(text, begin_of_character_before(text, begin)).first)) ||
         (end < text.size() && is_of_word(character_at(text, end).first));
}

}  // namespace

void added_tokens::add(added_token token) {
  if (token.text.empty()) return;
  is_first_byte_[static_cast<unsigned char>(token.text.front())] = true;
  const auto place =
      std::find_if(longest_first_.begin(), longest_first_.end(),
                   [&](const added_token& other) { return other.text.size() < token.text.size(); });
  longest_first_.insert(place, std::move(token));
}

std::optional<added_tokens::match> added_tokens::find(std::string_view text,
                                                      std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!is_first_byte_[static_cast<unsigned char>(text[at])]) continue;
    const auto token =
        std::find_if(longest_first_.begin(), longest_first_.end(),
                     [&](const added_token& one) { return text.substr(at).starts_with(one.text); });
    if (token == longest_first_.end()) continue;
    match found{at, at + token->text.size(), token->id};
    if (token->is_single_word && adjoins_a_word(text, found.begin, found.end)) {
      at = found.end - 1;
      continue;
    }
    while (token->takes_left_space && found.begin > from) {
      const std::size_t before = begin_of_character_before(text, found.begin);
      if (before < from || !is_space(character_at(text, before).first)) break;
      found.begin = before;
    }
    while (token->takes_right_space && found.end < text.size()) {
      const auto [character, length] = character_at(text, found.end);
      if (!is_space(character)) break;
      found.end += length;
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace hone
