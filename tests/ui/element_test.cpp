#include "ui/html/element.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/ui/markup.hpp"
#include "ui/html/characters.hpp"

namespace hone {
namespace {

using html::element;
using html::text;
using testing_support::hostile_texts;
using testing_support::parsed;

std::string document_of(const std::string& hostile) {
  return html::page(
      {hostile, "p { color: red }", "default-src 'none'"},
      {element("p", {{"class", hostile}, {"title", hostile}}, {text(hostile)}),
       element("pre", {}, {text(hostile)}), html::isolated(hostile),
       element("a", {html::href(html::url("/variant").segment(hostile).query(hostile, hostile))}),
       element("a", {html::href(html::url().fragment(hostile))}, {text(hostile)}),
       element("select", {}, {element("option", {{"value", hostile}}, {text(hostile)})}),
       element(
           "svg", {{"viewBox", hostile}},
           {element("title", {}, {text(hostile)}),
            element("a", {html::href(html::url("/x"))}, {element("text", {}, {text(hostile)})})})});
}

TEST(ElementTest, IsWrittenAsNested) {
  EXPECT_EQ(element("p", {{"class", "note"}}, {text("a"), element("b", {}, {text("x")})}).str(),
            "<p class=\"note\">a<b>x</b></p>");
  EXPECT_EQ(element("br").str(), "<br/>");
  EXPECT_EQ(html::fragment({text("a"), element("hr"), text("b")}).str(), "a<hr/>b");
  EXPECT_EQ(element("ul", {}, std::vector<element>(2, element("li"))).str(),
            "<ul><li></li><li></li></ul>");
}

TEST(ElementTest, EscapesTextAndAttributes) {
  const std::string all = "<>&\"'";
  const std::string escaped = "&lt;&gt;&amp;&quot;&#39;";
  EXPECT_EQ(text(all).str(), escaped);
  EXPECT_EQ(element("p", {{"title", all}}).str(), "<p title=\"" + escaped + "\"></p>");
}

TEST(ElementTest, ReplacesInvalidUtf8ByteByByte) {
  EXPECT_EQ(text("a\xFF\xC0\xBC z").str(), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD z");
  EXPECT_EQ(text("\xED\xA0\x80").str(), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(text("\xE2\x82").str(), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(text("\xE2\x82\xAC\xF0\x9F\x98\x80").str(), "\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(ElementTest, ShowsDeceptiveCharactersAsMarkers) {
  EXPECT_EQ(text("a\xE2\x80\xAE").str(), "a<span class=\"cp\">U+202E</span>");
  EXPECT_EQ(text(std::string(3, '\0')).str(), "<span class=\"cp\">U+0000×3</span>");
  EXPECT_EQ(text("a\n\tb").str(), "a\n\tb");
  EXPECT_EQ(element("p", {{"title", "\x1b["}}).str(), "<p title=\"[U+001B][\"></p>");
  EXPECT_EQ(element("svg", {}, {element("text", {}, {text("\r")})}).str(),
            "<svg><text>[U+000D]</text></svg>");
  EXPECT_EQ(element("option", {}, {html::fragment({text("\r")})}).str(),
            "<option>[U+000D]</option>");
}

TEST(ElementTest, ShowsCombiningTowersAsMarkers) {
  std::string tower = "Z";
  for (int i = 0; i < 1000; ++i) tower += "\xCC\x80";
  EXPECT_EQ(text(tower).str(),
            "Z\xCC\x80\xCC\x80\xCC\x80\xCC\x80<span class=\"cp\">U+0300×996</span>");
}

TEST(ElementTest, HostileTextStaysText) {
  for (const std::string& hostile : hostile_texts()) {
    const std::string document = document_of(hostile);
    const auto found = parsed(document);
    EXPECT_EQ(found.error, "") << hostile.substr(0, 80);
    ASSERT_EQ(found.links.size(), 3U);
    EXPECT_TRUE(found.links[0].starts_with("/variant/")) << found.links[0];
    EXPECT_TRUE(found.links[1].starts_with("#")) << found.links[1];
    // Only markers add elements to those that the builder was given.
    const auto is_marker = [](const std::string& tag) { return tag == "span"; };
    EXPECT_EQ(found.tags.size() - static_cast<std::size_t>(std::count_if(
                                      found.tags.begin(), found.tags.end(), is_marker)),
              19U);
  }
}

TEST(ElementTest, FirstWrittenBoundsTheSizeOfHtml) {
  EXPECT_EQ(html::first_written("a<b", 4), "a");
  EXPECT_EQ(html::first_written("a<b", 6), "a<b");
  EXPECT_EQ(html::first_written("\xE2\x82\xAC\xE2\x82\xAC", 5), "\xE2\x82\xAC");
  for (const std::string& hostile : hostile_texts()) {
    for (const std::size_t bytes : {0U, 50U, 1000U, 50'000U}) {
      const std::string_view shown = html::first_written(hostile, bytes);
      EXPECT_LE(text(shown).str().size(), bytes);
      // The omitted text would not fit, where the estimate of a marker's size is no matter.
      if (shown.size() < hostile.size()) {
        EXPECT_TRUE(shown.empty() || text(shown).str().size() + 80 > bytes / 2);
      }
    }
  }
}

TEST(ElementTest, PrintableTextIsReadBackUnchanged) {
  std::string printable;
  for (char c = ' '; c <= '~'; ++c) printable += c;
  printable += "\n\t\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80";
  EXPECT_EQ(parsed(element("p", {}, {text(printable)}).str()).text, printable);
}

TEST(ElementTest, EveryByteAndEveryPairIsWrittenWell) {
  for (int first = 0; first < 256; ++first) {
    std::string pairs;
    for (int second = 0; second < 256; ++second) {
      pairs += {static_cast<char>(first), static_cast<char>(second), ' '};
    }
    EXPECT_EQ(parsed(element("p", {{"title", pairs}}, {text(pairs)}).str()).error, "") << first;
  }
}

TEST(ElementTest, TakesTimeLinearInTheSizeOfText) {
  const auto seconds = [](std::size_t bytes) {
    const std::string hostile(bytes, '<');
    const auto begin = std::chrono::steady_clock::now();
    std::size_t size = 0;
    for (int i = 0; i < 3; ++i) size += element("p", {}, {text(hostile)}).str().size();
    EXPECT_EQ(size, 3 * (4 * bytes + 7));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double small = seconds(1U << 18U);
  EXPECT_LT(seconds(1U << 22U), 160 * small + 0.5);  // quadratic time: 256 times
}

TEST(UrlTest, EncodesAllThatIsAdded) {
  EXPECT_EQ(html::url("/task/")
                .segment("a/b?c#d e\xFF")
                .query("x&y", "=1")
                .query("z", "")
                .fragment("L 1")
                .str(),
            "/task/a%2Fb%3Fc%23d%20e%FF?x%26y=%3D1&z=#L%201");
  EXPECT_EQ(html::url("/").segment("/evil.example").str(), "/%2Fevil.example");
  EXPECT_EQ(html::url().fragment("javascript:x").str(), "#javascript%3Ax");
}

TEST(PageTest, IsAWholeDocument) {
  const std::string document =
      html::page({"a < b", html::url("/style.css"), "default-src 'self'"}, {element("main")});
  EXPECT_TRUE(document.starts_with("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset"));
  EXPECT_NE(document.find("<title>a &lt; b</title>"), document.npos);
  EXPECT_NE(document.find("<link rel=\"stylesheet\" href=\"/style.css\"/>"), document.npos);
  EXPECT_NE(document.find("Security-Policy\" content=\"default-src &#39;self&#39;\""),
            document.npos);
  EXPECT_EQ(parsed(document).error, "");
}

TEST(PageTest, WritesTheStyleByteByByteAndRefusesMarkup) {
  const std::string sheet = ".a > .b::before { content: \"&\" }";
  const std::string document = html::page({"", sheet, ""}, {});
  EXPECT_NE(document.find("<style>" + sheet + "</style>"), document.npos);
  EXPECT_EQ(document.find("Content-Security-Policy"), document.npos);
  EXPECT_THROW(html::page({"", "</style><script>", ""}, {}), std::invalid_argument);
}

TEST(CharactersTest, ShortensToColumns) {
  EXPECT_EQ(html::shortened("softmax", 7), "softmax");
  EXPECT_EQ(html::shortened("softmax_", 7), "softma…");
  EXPECT_EQ(html::shortened("\xE6\xBC\xA2\xE5\xAD\x97\xE5\xAD\x97", 5),
            "\xE6\xBC\xA2\xE5\xAD\x97…");
  EXPECT_EQ(html::shortened("", 3), "");
  for (const std::string& hostile : hostile_texts()) {
    EXPECT_LE(html::columns_of(html::shortened(hostile, 20), 100), 20U);
    EXPECT_LE(html::shortened(hostile, 20).size(), 1000U);
  }
}

TEST(CharactersTest, CutsNoCharacter) {
  EXPECT_EQ(html::first_bytes("a\xE2\x82\xAC", 3), "a");
  EXPECT_EQ(html::first_bytes("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
  EXPECT_EQ(html::first_bytes(std::string(9, '\x80'), 5).size(), 2U);
}

}  // namespace
}  // namespace hone
