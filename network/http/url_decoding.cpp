#include "network/http/url_decoding.hpp"

#include <algorithm>
#include <charconv>

namespace hone {

std::string decode_url(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* const end = text.data() + i + 3;
      if (std::from_chars(text.data() + i + 1, end, value, 16).ptr == end) {
        decoded += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

namespace {

// Forms send spaces as '+'.
std::string decode_query(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return decode_url(spaced);
}

}  // namespace

void split_target(std::string_view target, std::string& path,
                  std::map<std::string, std::string>& query) {
  const std::size_t mark = target.find('?');
  path = decode_url(target.substr(0, mark));
  if (mark == std::string_view::npos) return;
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (pair.empty()) continue;
    query[decode_query(pair.substr(0, equals))] =
        equals == std::string_view::npos ? "" : decode_query(pair.substr(equals + 1));
  }
}

}  // namespace hone
