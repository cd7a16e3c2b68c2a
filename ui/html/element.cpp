#include "ui/html/element.hpp"

#include <cstdio>
#include <stdexcept>

#include "ui/html/characters.hpp"

namespace hone::html {
namespace {

constexpr std::size_t max_combining = 4;

enum class escaping { html, plain };

void append_marker(std::string& out, char32_t code, std::size_t count, escaping form) {
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "U+%04X", static_cast<unsigned>(code));
  out += form == escaping::html ? "<span class=\"cp\">" : "[";
  out += name.data();
  if (count > 1) out += "×" + std::to_string(count);
  out += form == escaping::html ? "</span>" : "]";
}

void append_escaped(std::string& out, std::string_view content, escaping form) {
  std::size_t marks = 0;  // combining characters in a row
  for (std::size_t offset = 0; offset < content.size();) {
    const character c = character_at(content, offset);
    marks = is_combining(c.code) ? marks + 1 : 0;
    if (is_deceptive(c.code) || marks > max_combining) {
      std::size_t count = 0;
      while (offset < content.size() && character_at(content, offset).code == c.code) {
        offset += c.bytes;
        ++count;
      }
      append_marker(out, c.code, count, form);
      continue;
    }
    if (c.code == '&') {
      out += "&amp;";
    } else if (c.code == '<') {
      out += "&lt;";
    } else if (c.code == '>') {
      out += "&gt;";
    } else if (c.code == '"') {
      out += "&quot;";
    } else if (c.code == '\'') {
      out += "&#39;";
    } else if (c.code == 0xFFFD) {
      out += "\xEF\xBF\xBD";
    } else {
      out += content.substr(offset, c.bytes);
    }
    offset += c.bytes;
  }
}

std::size_t escaped_bytes(const character& c) {
  switch (c.code) {
    case '&':
      return 5;
    case '<':
    case '>':
      return 4;
    case '"':
      return 6;
    case '\'':
      return 5;
    case 0xFFFD:
      return 3;
    default:
      return c.bytes;
  }
}

void append_attribute(std::string& out, std::string_view name, std::string_view value) {
  out += ' ';
  out += name;
  out += "=\"";
  append_escaped(out, value, escaping::plain);
  out += '"';
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain) {
      encoded += c;
    } else {
      encoded += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return encoded;
}

}  // namespace

url url::segment(std::string_view name) const {
  url extended = *this;
  if (!path_.ends_with('/')) extended.path_ += '/';
  extended.path_ += percent_encoded(name);
  return extended;
}

url url::query(std::string_view key, std::string_view value) const {
  url extended = *this;
  extended.query_ += (query_.empty() ? "?" : "&") + percent_encoded(key) + "=";
  extended.query_ += percent_encoded(value);
  return extended;
}

url url::fragment(std::string_view id) const {
  url extended = *this;
  extended.fragment_ = "#" + percent_encoded(id);
  return extended;
}

std::string url::str() const { return path_ + query_ + fragment_; }

attribute href(const url& target) { return {std::string_view("href"), target}; }

attribute action(const url& target) { return {std::string_view("action"), target}; }

element::element(tag_name tag, attributes properties, children inner)
    : tag_(tag.str()), attributes_(std::move(properties)), children_(std::move(inner).take()) {}

std::string element::str() const {
  std::string out;
  append_to(out);
  return out;
}

void element::append_to(std::string& out, bool is_html) const {
  if (tag_.empty()) {
    append_escaped(out, text_, is_html ? escaping::html : escaping::plain);
    for (const element& child : children_) child.append_to(out, is_html);
    return;
  }
  out += '<';
  out += tag_;
  for (const attribute& a : attributes_) append_attribute(out, a.name(), a.value());
  if (tag_ == "br" || tag_ == "col" || tag_ == "hr" || tag_ == "input") {
    out += "/>";
    return;
  }
  out += '>';
  // A <span> would end the SVG around it, and is text inside an <option>.
  const bool is_html_inside = is_html && tag_ != "svg" && tag_ != "option";
  for (const element& child : children_) child.append_to(out, is_html_inside);
  out += "</";
  out += tag_;
  out += '>';
}

element text(std::string_view content) {
  element leaf;
  leaf.text_ = content;
  return leaf;
}

std::string_view first_written(std::string_view content, std::size_t max_bytes) {
  constexpr std::size_t marker_bytes = 40;  // with a count
  std::size_t marks = 0;
  std::size_t sum = 0;
  char32_t last_marked = 0xFFFFFFFF;
  std::size_t offset = 0;
  while (offset < content.size()) {
    const character c = character_at(content, offset);
    marks = is_combining(c.code) ? marks + 1 : 0;
    if (is_deceptive(c.code) || marks > max_combining) {
      sum += c.code == last_marked ? 0 : marker_bytes;
      last_marked = c.code;
    } else {
      sum += escaped_bytes(c);
      last_marked = 0xFFFFFFFF;
    }
    if (sum > max_bytes) break;
    offset += c.bytes;
  }
  return content.substr(0, offset);
}

element isolated(std::string_view content) { return element("bdi", {}, {text(content)}); }

element fragment(children inner) {
  element row;
  for (element& child : std::move(inner).take()) row.add(std::move(child));
  return row;
}

std::string page(const page_head& head, children body) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
  if (!head.content_security_policy.empty()) {
    out += "<meta http-equiv=\"Content-Security-Policy\"";
    append_attribute(out, "content", head.content_security_policy);
    out += "/>\n";
  }
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>";
  append_escaped(out, head.title, escaping::plain);
  out += "</title>\n";
  if (const auto* const sheet = std::get_if<std::string>(&head.style)) {
    if (sheet->find('<') != sheet->npos) {
      throw std::invalid_argument("the style sheet of a page contains \"<\"");
    }
    out += "<style>" + *sheet + "</style>\n";
  } else {
    out += "<link rel=\"stylesheet\"";
    append_attribute(out, "href", std::get<url>(head.style).str());
    out += "/>\n";
  }
  if (head.script) {
    out += "<script defer=\"\"";
    append_attribute(out, "src", head.script->str());
    out += "></script>\n";
  }
  out += "</head>\n<body>\n";
  fragment(std::move(body)).append_to(out);
  out += "\n</body>\n</html>\n";
  return out;
}

}  // namespace hone::html
