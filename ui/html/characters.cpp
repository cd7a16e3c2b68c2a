#include "ui/html/characters.hpp"

#include <algorithm>
#include <array>

namespace hone::html {
namespace {

struct code_range {
  char32_t first;
  char32_t last;
};

constexpr std::array deceptive = std::to_array<code_range>({{0x00, 0x08},
                                                            {0x0B, 0x1F},
                                                            {0x7F, 0x9F},
                                                            {0xAD, 0xAD},
                                                            {0x61C, 0x61C},
                                                            {0x115F, 0x1160},
                                                            {0x180E, 0x180E},
                                                            {0x200B, 0x200F},
                                                            {0x2028, 0x202E},
                                                            {0x2060, 0x206F},
                                                            {0x3164, 0x3164},
                                                            {0xFDD0, 0xFDEF},
                                                            {0xFEFF, 0xFEFF},
                                                            {0xFFA0, 0xFFA0},
                                                            {0xFFF9, 0xFFFB},
                                                            {0xFFFE, 0xFFFF},
                                                            {0xE0000, 0xE01EF}});
constexpr std::array combining = std::to_array<code_range>({{0x300, 0x36F},
                                                            {0x483, 0x489},
                                                            {0x591, 0x5BD},
                                                            {0x64B, 0x65F},
                                                            {0xE31, 0xE3A},
                                                            {0xE47, 0xE4E},
                                                            {0x1AB0, 0x1AFF},
                                                            {0x1DC0, 0x1DFF},
                                                            {0x20D0, 0x20FF},
                                                            {0xFE00, 0xFE0F},
                                                            {0xFE20, 0xFE2F}});

template <std::size_t n>
bool contains(const std::array<code_range, n>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [code](const code_range& range) {
    return code >= range.first && code <= range.last;
  });
}

std::size_t columns(char32_t code) {
  if (is_deceptive(code)) return 8;
  if (is_combining(code)) return 0;
  return code >= 0x1100 && (code < 0x2000 || code >= 0x2E80) ? 2 : 1;
}

}  // namespace

character character_at(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size() - offset) return {};
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

bool is_deceptive(char32_t code) {
  if (code >= 0x20 && code < 0x7F) return false;
  return contains(deceptive, code) || (code & 0xFFFEU) == 0xFFFEU;
}

bool is_combining(char32_t code) { return code >= 0x300 && contains(combining, code); }

std::string_view first_bytes(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  // A valid character has at most three bytes after its first one.
  const std::size_t min_bytes = max_bytes - std::min<std::size_t>(max_bytes, 3);
  std::size_t end = max_bytes;
  while (end > min_bytes && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::size_t columns_of(std::string_view text, std::size_t max_columns) {
  std::size_t sum = 0;
  for (std::size_t offset = 0; offset < text.size() && sum <= max_columns;) {
    const character c = character_at(text, offset);
    sum += columns(c.code);
    offset += c.bytes;
  }
  return std::min(sum, max_columns + 1);
}

std::string shortened(std::string_view text, std::size_t max_columns) {
  std::size_t used = 0;
  std::size_t marks = 0;  // combining characters in a row
  std::size_t cut = 0;    // the end of the longest prefix that leaves a column for the ellipsis
  std::size_t offset = 0;
  while (offset < text.size()) {
    const character c = character_at(text, offset);
    used += columns(c.code);
    marks = is_combining(c.code) ? marks + 1 : 0;
    if (used > max_columns || marks > 8) return std::string(text.substr(0, cut)) + "…";
    offset += c.bytes;
    if (used < max_columns) cut = offset;
  }
  return std::string(text);
}

}  // namespace hone::html
