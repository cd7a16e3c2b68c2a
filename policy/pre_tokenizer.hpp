#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

// What stands between a text and its pieces, in the order of a Hugging Face tokenizer.json.

// Bytes that are no UTF-8 become U+FFFD.
std::string valid_utf8(std::string_view text);
std::string encode_utf8(std::uint32_t code_point);

// GPT-2's pattern, which ByteLevel applies itself when told to.
extern const char* const gpt2_pattern;

// A PCRE2 expression over UTF-8. Threads may share one.
class pattern {
 public:
  // Throws policy_error.
  explicit pattern(const std::string& source);
  // An expression that matches this text alone.
  static std::string escape(const std::string& literal);
  // [begin, end) of every match that is not empty, in order. `text` must be valid UTF-8.
  std::vector<std::pair<std::size_t, std::size_t>> matches(std::string_view text) const;

 private:
  struct code;
  std::shared_ptr<const code> code_;
};

// Cuts text into pieces; what matches and what lies between either stays or goes.
struct splitter {
  pattern at;
  bool keep_matches = true;
  bool keep_gaps = true;
};

std::vector<std::string_view> cut(const splitter& split,
                                  const std::vector<std::string_view>& pieces);

}  // namespace hone
