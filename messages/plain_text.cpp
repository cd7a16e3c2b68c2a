#include "messages/plain_text.hpp"

#include <utf8proc.h>

namespace hone {

std::string plain_text(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character);
    const bool is_text = length > 0 && utf8proc_category(character) != UTF8PROC_CATEGORY_CC &&
                         utf8proc_category(character) != UTF8PROC_CATEGORY_CF;
    const std::size_t used = length > 0 ? static_cast<std::size_t>(length) : 1;
    if (is_text || character == '\n' || character == '\t') {
      plain += text.substr(at, used);
    } else {
      plain += '?';
    }
    at += used;
  }
  return plain;
}

std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (most > 0 && continues(most)) --most;
  return text.substr(0, most);
}

}  // namespace hone
