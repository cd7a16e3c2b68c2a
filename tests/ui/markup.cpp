#include "tests/ui/markup.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace hone::testing_support {
namespace {

using namespace std::string_literals;

class parser {
 public:
  explicit parser(std::string_view source) : source_(source) {}

  markup run() {
    check_bytes();
    skip("<!DOCTYPE html>");
    while (offset_ < source_.size() && result_.error.empty()) {
      if (source_[offset_] == '<') {
        parse_tag();
      } else {
        result_.text += parse_text('<');
      }
    }
    if (!open_.empty()) fail("not closed: " + open_.back());
    return std::move(result_);
  }

 private:
  void fail(const std::string& why) {
    if (result_.error.empty()) {
      result_.error = why + " at " + std::to_string(offset_) + ": " +
                      std::string(source_.substr(std::min(offset_, source_.size()), 60));
    }
    offset_ = source_.size();
  }

  bool skip(std::string_view expected) {
    if (!source_.substr(offset_).starts_with(expected)) return false;
    offset_ += expected.size();
    return true;
  }

  void check_bytes() {
    for (std::size_t i = 0; i < source_.size(); ++i) {
      const auto byte = static_cast<unsigned char>(source_[i]);
      const std::string_view three = source_.substr(i, 3);
      offset_ = i;
      if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) return fail("control");
      if (three >= "\xE2\x80\x8E" && three <= "\xE2\x80\x8F") return fail("bidirectional mark");
      if (three >= "\xE2\x80\xA8" && three <= "\xE2\x80\xAE") return fail("separator or override");
      if (three >= "\xE2\x81\xA6" && three <= "\xE2\x81\xA9") return fail("isolate");
      if (byte < 0x80) continue;
      const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      if (byte < 0xC2 || byte > 0xF4 || i + length > source_.size()) return fail("UTF-8");
      if (byte == 0xED && static_cast<unsigned char>(source_[i + 1]) >= 0xA0)
        return fail("surrogate");
      for (std::size_t k = 1; k < length; ++k) {
        if ((static_cast<unsigned char>(source_[i + k]) & 0xC0U) != 0x80U) return fail("UTF-8");
      }
      i += length - 1;
    }
    offset_ = 0;
  }

  std::string parse_text(char end) {
    std::string text;
    while (offset_ < source_.size() && source_[offset_] != end) {
      const char c = source_[offset_];
      if (c == '<' || (c == '>' && open_ != std::vector{"html"s, "head"s, "style"s})) {
        fail("not escaped");
        return text;
      }
      if (c != '&') {
        text += c;
        ++offset_;
        continue;
      }
      constexpr std::array<std::pair<std::string_view, char>, 5> entities = {
          {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}}};
      const auto entity = std::find_if(entities.begin(), entities.end(), [&](const auto& e) {
        return source_.substr(offset_).starts_with(e.first);
      });
      if (entity == entities.end()) {
        fail("entity");
        return text;
      }
      text += entity->second;
      offset_ += entity->first.size();
    }
    return text;
  }

  std::string parse_name() {
    const std::size_t begin = offset_;
    while (offset_ < source_.size() &&
           (std::isalnum(static_cast<unsigned char>(source_[offset_])) != 0 ||
            source_[offset_] == '-')) {
      ++offset_;
    }
    if (begin == offset_) fail("name");
    return std::string(source_.substr(begin, offset_ - begin));
  }

  void parse_tag() {
    if (skip("</")) {
      const std::string name = parse_name();
      if (open_.empty() || open_.back() != name) return fail("unexpected </" + name + ">");
      open_.pop_back();
      if (!skip(">")) fail("end tag");
      return;
    }
    ++offset_;
    const std::string name = parse_name();
    const bool is_style_of_head = name == "style" && open_ == std::vector{"html"s, "head"s};
    const std::set<std::string> forbidden = {"script", "iframe", "object", "embed", "img", "base"};
    if (forbidden.contains(name) || (name == "style" && !is_style_of_head)) return fail(name);
    if (name == "span" && std::find(open_.begin(), open_.end(), "svg") != open_.end()) {
      return fail("<span> in <svg>");
    }
    result_.tags.push_back(name);
    std::set<std::string> names;
    while (skip(" ")) {
      const std::string attribute = parse_name();
      if (attribute.starts_with("on") || attribute == "style") return fail(attribute);
      if (!names.insert(attribute).second) return fail("repeated " + attribute);
      if (!skip("=\"")) return fail("value");
      const std::string value = parse_text('"');
      if (!skip("\"")) return fail("quote");
      if (attribute == "href") result_.links.push_back(value);
    }
    if (skip("/>")) return;
    if (!skip(">")) return fail("tag");
    open_.push_back(name);
  }

  std::string_view source_;
  std::size_t offset_ = 0;
  std::vector<std::string> open_;
  markup result_;
};

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

markup parsed(std::string_view source) { return parser(source).run(); }

const std::vector<std::string>& hostile_texts() {
  static const std::vector<std::string> texts = {
      "",
      "</script><script>alert(1)</script>",
      "<img src=x onerror=alert(1)>",
      "<svg onload=alert(1)>",
      "\"><b onclick='x'>",
      "' onmouseover='x",
      "javascript:alert(1)",
      "data:text/html,<script>1</script>",
      "</title></style></svg></pre></td><!--",
      "<![CDATA[ ]]> --> <?xml ?>",
      "&lt;&amp;&#60;&#x3c;&bogus;&",
      "{{ 7 * 7 }} ${x} <%= y %>",
      "a\0b\0\0\0c"s,
      "\x01\x1b[31m\x7f \xC2\x85 \r\n\r",
      "line\xE2\x80\xA8separator\xE2\x80\xA9",
      "\xE2\x80\xAE gnp.exe \xE2\x80\xAC \xE2\x81\xA6x\xE2\x81\xA9 \xE2\x80\x8F\xE2\x80\x8E",
      "\xED\xA0\x80 \xED\xBF\xBF lone surrogates",
      "\xC0\xBC\xE0\x80\xBC overlong \xF5\x80\x80\x80 \xFF\xFE \xE2\x82",
      "\xEF\xBF\xBE\xEF\xBF\xBF\xEF\xBB\xBF noncharacters",
      "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D \xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7",
      "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB \xE6\xBC\xA2\xE5\xAD\x97",
      "Z" + repeated("\xCC\x80\xCD\x8C\xCC\xB4", 2000),
      repeated("\0"s, 5000),
      repeated("x<", 128 * 1024),
      repeated("/* \"\n", 100'000),
      "../../etc/passwd?x=1#y%00%2e%2e",
      "__proto__",
      "\"\"\"R\"(\\",
  };
  return texts;
}

}  // namespace hone::testing_support
