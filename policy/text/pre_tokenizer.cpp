#include "policy/text/pre_tokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <array>

#include "policy/files.hpp"

namespace hone {
namespace {

struct free_match {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

}  // namespace

const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string encode_utf8(std::uint32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(n)};
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
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                       PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
  if (compiled == nullptr)
    throw policy_error("the pattern '" + source + "' cannot be compiled, at character " +
                       std::to_string(at));
  code_ = std::make_shared<const code>(compiled);
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
  std::size_t at = 0;
  while (at <= text.size()) {
    const int found = pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), at, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (found < 0) break;
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
    if (bounds[1] > bounds[0]) all.emplace_back(bounds[0], bounds[1]);
    at = bounds[1] > bounds[0] ? bounds[1] : bounds[1] + 1;
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
