#include "messages/plain_text.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(PlainText, KeepsTextOfEveryScript) {
  const std::string text = "d\xc3\xa9j\xc3\xa0 vu\n\t\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x8e\x89";
  EXPECT_EQ(plain_text(text), text);
  EXPECT_EQ(plain_text(""), "");
}

TEST(PlainText, ReplacesWhatATerminalObeys) {
  EXPECT_EQ(plain_text("\x1b[2K\rok\x07\x7f"), "?[2K?ok??");
  EXPECT_EQ(plain_text("\xc2\x9b"
                       "31m"),
            "?31m")
      << "a control character of two bytes";
  EXPECT_EQ(plain_text("\xe2\x80\xae"
                       "ko"),
            "?ko")
      << "text from right to left";
  EXPECT_EQ(plain_text(std::string_view("a\0b", 3)), "a?b");
}

TEST(PlainText, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(plain_text("\xff\xfe"
                       "a\xc3"),
            "??a?");
  EXPECT_EQ(plain_text("\xed\xa0\x80"), "???") << "a surrogate";
}

TEST(FirstBytes, CutNoCharacter) {
  EXPECT_EQ(first_bytes("short", 5), "short");
  EXPECT_EQ(first_bytes("longer", 4), "long");
  EXPECT_EQ(first_bytes("n\u00e4her", 2), "n");
  EXPECT_EQ(first_bytes("n\u00e4her", 3), "n\u00e4");
  EXPECT_EQ(first_bytes("\xe2\x82\xac", 2), "");
}

}  // namespace
}  // namespace hone
