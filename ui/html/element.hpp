#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// A builder of HTML with SVG that cannot be made to produce markup from data. Names of tags and
// attributes are literals from a list without scripts, styles, frames and event handlers, checked
// when the caller is compiled. Text and attribute values are escaped. Links are made from `url`.
//
// Values are movable and copyable like strings; different values can be used in different threads.
namespace hone::html {

namespace allowed {
inline constexpr std::array tags = std::to_array<std::string_view>(
    {"a",        "abbr",    "article",  "aside",      "b",      "bdi",     "br",     "button",
     "caption",  "code",    "col",      "colgroup",   "dd",     "details", "div",    "dl",
     "dt",       "em",      "fieldset", "figcaption", "figure", "footer",  "form",   "h1",
     "h2",       "h3",      "h4",       "header",     "hr",     "input",   "kbd",    "label",
     "legend",   "li",      "main",     "mark",       "nav",    "ol",      "option", "p",
     "pre",      "section", "select",   "small",      "span",   "strong",  "sub",    "summary",
     "sup",      "table",   "tbody",    "td",         "tfoot",  "th",      "thead",  "time",
     "tr",       "ul",      "circle",   "desc",       "g",      "line",    "path",   "polygon",
     "polyline", "rect",    "svg",      "text",       "title",  "tspan"});
inline constexpr std::array attributes = std::to_array<std::string_view>(
    {"aria-current", "aria-hidden",  "aria-label", "aria-live", "checked",     "class",
     "colspan",      "cx",           "cy",         "d",         "datetime",    "dir",
     "disabled",     "fill-opacity", "for",        "height",    "hidden",      "id",
     "lang",         "max",          "maxlength",  "method",    "min",         "name",
     "open",         "placeholder",  "points",     "r",         "role",        "rowspan",
     "scope",        "selected",     "spellcheck", "tabindex",  "text-anchor", "title",
     "transform",    "type",         "value",      "viewBox",   "width",       "x",
     "x1",           "x2",           "y",          "y1",        "y2"});
}  // namespace allowed

// The name of an allowed tag: a literal. Another one is an error of the compiler.
class tag_name {
 public:
  template <std::size_t n>
  consteval tag_name(const char (&name)[n]) : name_(name, n - 1) {  // NOLINT: implicit
    if (std::ranges::find(allowed::tags, name_) == allowed::tags.end()) throw "tag not allowed";
  }
  std::string_view str() const { return name_; }

 private:
  std::string_view name_;
};

// The name of an allowed attribute: a literal. `href` and `action` are functions.
class attribute_name {
 public:
  template <std::size_t n>
  consteval attribute_name(const char (&name)[n]) : name_(name, n - 1) {  // NOLINT: implicit
    if (std::ranges::find(allowed::attributes, name_) == allowed::attributes.end()) {
      throw "attribute not allowed";
    }
  }
  std::string_view str() const { return name_; }

 private:
  std::string_view name_;
};

// The literal beginning of a path on this server: "/" followed by letters, digits and "/-_.".
class url_prefix {
 public:
  template <std::size_t n>
  consteval url_prefix(const char (&path)[n]) : path_(path, n - 1) {  // NOLINT: implicit
    if (!path_.starts_with('/') || path_.find("//") != path_.npos ||
        path_.find("..") != path_.npos ||
        path_.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/-_.") != path_.npos) {
      throw "not the beginning of a path";
    }
  }
  std::string_view str() const { return path_; }

 private:
  std::string_view path_;
};

// A link to a path of this server or, if constructed without a path, to a place on the page. All
// that is added is percent-encoded. (Browsers resolve the segments "." and ".." even if they are
// encoded, so a server must not hand out such names.)
class url {
 public:
  url() = default;
  explicit url(url_prefix path) : path_(path.str()) {}

  // Appends a segment to the path, after a "/" unless the path ends in one.
  url segment(std::string_view name) const;
  url query(std::string_view key, std::string_view value) const;
  url fragment(std::string_view id) const;

  std::string str() const;

 private:
  std::string path_;
  std::string query_;     // with its "?"
  std::string fragment_;  // with its "#"
};

// An attribute. An empty value is that of boolean attributes such as `open`.
class attribute {
 public:
  attribute(attribute_name name, std::string value) : name_(name.str()), value_(std::move(value)) {}

  std::string_view name() const { return name_; }
  const std::string& value() const { return value_; }

  friend attribute href(const url& target);    // of an <a>, in HTML or SVG
  friend attribute action(const url& target);  // of a <form>

 private:
  attribute(std::string_view name, const url& target) : name_(name), value_(target.str()) {}

  std::string_view name_;
  std::string value_;
};

attribute href(const url& target);
attribute action(const url& target);

using attributes = std::vector<attribute>;

class element;

// The children of an element: those in braces, or a vector.
class children {
 public:
  children() = default;
  children(std::vector<element> elements);  // NOLINT: implicit
  template <typename... T>
  requires(sizeof...(T) > 0 && (std::same_as<std::remove_cvref_t<T>, element> && ...))
      children(T&&... elements) {  // NOLINT: implicit
    elements_.reserve(sizeof...(T));
    (elements_.push_back(std::forward<T>(elements)), ...);
  }
  std::vector<element> take() && { return std::move(elements_); }

 private:
  std::vector<element> elements_;
};

// An element, a text or, without a tag and a text, a fragment: elements in a row.
class element {
 public:
  element() = default;
  element(tag_name tag, attributes properties = {}, children inner = {});

  void add(element child) { children_.push_back(std::move(child)); }

  // Appends the element as HTML that is well-formed XML too. Takes time linear in its size.
  void append_to(std::string& out) const { append_to(out, true); }
  std::string str() const;

  friend element text(std::string_view content);

 private:
  void append_to(std::string& out, bool is_html) const;

  std::string_view tag_;
  std::vector<attribute> attributes_;
  std::vector<element> children_;
  std::string text_;
};

inline children::children(std::vector<element> elements) : elements_(std::move(elements)) {}

// A text. Bytes that are not UTF-8 become U+FFFD. A deceptive character (`is_deceptive`) becomes a
// visible marker, <span class="cp">U+202E</span> in HTML and [U+202E] in SVG and attribute values.
// A run of one deceptive character becomes one marker with its length, and so do combining
// characters after the first four over a letter.
element text(std::string_view content);

// Returns the longest prefix of a text that text() writes with at most `max_bytes` bytes of HTML: a
// marker takes many more bytes than its character. Cuts no character.
std::string_view first_written(std::string_view content, std::size_t max_bytes);

// A text from a model or another stranger, inside a sentence or a cell: <bdi>.
element isolated(std::string_view content);

element fragment(children inner);

// The head of a document.
struct page_head {
  std::string title;
  // The style sheet: its text, written to the page byte by byte, so that a policy can name its
  // hash, or a link to it.
  std::variant<std::string, url> style;
  std::string content_security_policy;  // of the <meta>; empty: none
  std::optional<url> script{};          // a link to it
};

// Returns a whole document in English. Throws std::invalid_argument if the text of the style sheet
// contains "<".
std::string page(const page_head& head, children body);

}  // namespace hone::html
