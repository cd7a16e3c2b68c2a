#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// A token of a tokenizer.json that is found in a text as a whole, before the text is cut and
// merged.
struct added_token {
  std::string text;
  std::uint32_t id = 0;
  bool takes_left_space = false;   // `lstrip`: a match includes the white space before it
  bool takes_right_space = false;  // `rstrip`: a match includes the white space behind it
  bool is_single_word = false;     // matches only where no letter or digit adjoins
};

// Finds added tokens as the Python package `tokenizers` does: the leftmost one, and the longest
// one that begins there. Immutable after the last add(); any number of threads may use it.
class added_tokens {
 public:
  struct match {
    std::size_t begin = 0;  // in bytes of the text
    std::size_t end = 0;
    std::uint32_t id = 0;
  };

  void add(added_token token);
  // Returns the first match at or behind `from`. `text` must be valid UTF-8.
  std::optional<match> find(std::string_view text, std::size_t from) const;

 private:
  std::vector<added_token> longest_first_;
  std::array<bool, 256> is_first_byte_{};  // of a token
};

// Appends the ids of added tokens in a text, and what `encode` appends for the text between them.
template <class Encode>
void cut_at(const added_tokens& added, std::string_view text, std::vector<std::uint32_t>& out,
            const Encode& encode) {
  std::size_t at = 0;
  while (const auto found = added.find(text, at)) {
    encode(text.substr(at, found->begin - at), out);
    out.push_back(found->id);
    at = found->end;
  }
  encode(text.substr(at), out);
}

}  // namespace hone
