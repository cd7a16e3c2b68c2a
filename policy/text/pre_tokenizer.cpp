#include "policy/text/pre_tokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <array>
#include <cstdlib>

#include "policy/files.hpp"

namespace hone {
namespace {

constexpr std::uint32_t max_steps = 50'000'000;  // of one search: about a second

struct free_match {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct free_context {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// Throws policy_error for what Oniguruma reads otherwise than PCRE2: \h is a hexadecimal digit
// there, && intersects classes, and without regard to case some pairs of letters match one
// character
// ("ss" the German sharp s, "fi" a ligature).
void refuse_other_syntax(const std::string& source) {
  const auto refuse = [&](const char* what) {
    throw policy_error("the pattern '" + source + "' has " + what + ", which is not supported");
  };
  for (const char* pair : {"ss", "SS", "ff", "fi", "fl", "st", "FF", "FI", "FL", "ST"}) {
    if (source.find("(?i") != std::string::npos && source.find(pair) != std::string::npos)
      refuse("(?i) and two letters that may be one character");
  }
  bool is_class = false;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char next = i + 1 < source.size() ? source[i + 1] : '\0';
    if (source[i] == '\\') {
      if (next == 'h' || next == 'H') refuse("\\h");
      ++i;
    } else if (source[i] == '[') {
      is_class = true;
    } else if (source[i] == ']') {
      is_class = false;
    } else if (is_class && source[i] == '&' && next == '&') {
      refuse("&& in a class");
    }
  }
}

}  // namespace

const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string encode_utf8(std::uint32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(n)};
}

std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> table;
  std::uint32_t next = 256;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174);
    table[b] = encode_utf8(printable ? b : next++);
  }
  return table;
}

std::string normalized(std::string_view text) {
  // The length is passed because the text may hold NUL characters.
  utf8proc_uint8_t* normal = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &normal,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string made(text);
  if (size >= 0) made.assign(reinterpret_cast<const char*>(normal), static_cast<std::size_t>(size));
  std::free(normal);
  return made;
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

struct pattern::code {
  explicit code(pcre2_code* c) : compiled(c) {}
  ~code() { pcre2_code_free(compiled); }
  code(const code&) = delete;
  code& operator=(const code&) = delete;

  pcre2_code* compiled;
};

pattern::pattern(const std::string& source) {
  refuse_other_syntax(source);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                       PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
  if (compiled == nullptr)
    throw policy_error("the pattern '" + source + "' cannot be compiled, at character " +
                       std::to_string(at));
  code_ = std::make_shared<const code>(compiled);
  std::uint32_t can_be_empty = 0;
  pcre2_pattern_info(compiled, PCRE2_INFO_MATCHEMPTY, &can_be_empty);
  if (can_be_empty != 0)
    throw policy_error("the pattern '" + source +
                       "' can match an empty text, which is not supported");
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
}

std::string pattern::escape(const std::string& literal) {
  std::string out;
  for (const char c : literal) {
    if (std::string_view(R"(\.^$|()[]{}*+?)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::vector<std::pair<std::size_t, std::size_t>> pattern::matches(std::string_view text) const {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  const std::unique_ptr<pcre2_match_data, free_match> match(
      pcre2_match_data_create_from_pattern(code_->compiled, nullptr));
  const std::unique_ptr<pcre2_match_context, free_context> limits(
      pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(limits.get(), max_steps);
  const auto search = [&](std::size_t at, std::uint32_t options) {
    return pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                       PCRE2_NO_UTF_CHECK | options, match.get(), limits.get());
  };
  for (std::size_t at = 0; at < text.size();) {
    int found = search(at, 0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = search(at, PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw policy_error("a pattern of the pre-tokenizer takes too many steps on a text of " +
                         std::to_string(text.size()) + " bytes");
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
    all.emplace_back(bounds[0], bounds[1]);
    at = bounds[1];
  }
  return all;
}

std::vector<std::string_view> cut(const splitter& split,
                                  const std::vector<std::string_view>& pieces) {
  std::vector<std::string_view> out;
  for (const std::string_view piece : pieces) {
    std::size_t last = 0;
    for (const auto& [begin, end] : split.at.matches(piece)) {
      if (begin > last && split.keep_gaps) out.push_back(piece.substr(last, begin - last));
      if (split.keep_matches) out.push_back(piece.substr(begin, end - begin));
      last = end;
    }
    if (last < piece.size() && split.keep_gaps) out.push_back(piece.substr(last));
  }
  return out;
}

}  // namespace hone
