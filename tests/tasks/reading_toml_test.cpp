#include "tasks/reading_toml.hpp"
#include "tests/support/refusal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using testing::HasSubstr;

std::string message_of(const auto& action) {
  return testing_support::refusal_of<format_error>(action);
}

TEST(TomlView, ErrorsNameFileLineKeyAndExpectedType) {
  const toml::table table = parse_toml("a = 1\n[b]\nc = \"x\"\n", "f.toml");
  toml_view view(table, "f.toml");
  EXPECT_EQ(message_of([&] { view.find_string("a"); }),
            "f.toml:1: a: is an integer, expected a string");
  toml_view inner = *view.find_table("b");
  EXPECT_EQ(message_of([&] { inner.find_bool("c"); }),
            "f.toml:3: b.c: is a string, expected true or false");
  EXPECT_THAT(message_of([&] { inner.string("d"); }), HasSubstr("b.d: is missing"));
}

TEST(TomlView, RefusesKeysThatNoGetterAskedFor) {
  const toml::table table = parse_toml("a = 1\nz = 2\n", "f.toml");
  toml_view view(table, "f.toml");
  view.find_integer("a");
  EXPECT_EQ(message_of([&] { view.finish(); }), "f.toml:2: z: unknown key, expected one of: a");
}

TEST(TomlView, NamesTheKeyThatAMissingOneMayHaveBeen) {
  const toml::table table = parse_toml("other = 1\nshpe = [1]\n", "f.toml");
  toml_view view(table, "f.toml");
  EXPECT_THAT(message_of([&] { view.need("shape"); }),
              HasSubstr("shape: is missing; did you mean it by shpe?"));
  EXPECT_THAT(message_of([&] { view.need("reference"); }), testing::EndsWith("is missing"));
}

TEST(TomlView, ShowsHowAnArrayIsWritten) {
  const toml::table table = parse_toml("a = 'cuda'\n", "f.toml");
  toml_view view(table, "f.toml");
  EXPECT_THAT(message_of([&] { view.find_strings("a"); }),
              HasSubstr("is a string, expected an array of strings, as in [\"cuda\"]"));
}

TEST(ParseToml, PointsAtTheLineOfASyntaxError) {
  EXPECT_THAT(message_of([] { parse_toml("a = 1\nb = = 2\n", "f.toml"); }),
              HasSubstr("f.toml:2: not valid TOML"));
}

TEST(TomlView, AcceptsAnIntegerAsANumber) {
  const toml::table table = parse_toml("a = 1\nb = 1.5\n", "f.toml");
  toml_view view(table, "f.toml");
  EXPECT_EQ(view.find_number("a"), 1.0);
  EXPECT_EQ(view.find_number("b"), 1.5);
}

}  // namespace
}  // namespace hone
