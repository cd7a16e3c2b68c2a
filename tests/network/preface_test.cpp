#include "network/preface.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

const preface whole = {join_purpose, "gpu 7", 0x3fb1a2c8e0d94b57, {{"judge", 18}, {"schema", 12}}};

TEST(Preface, ReadsBackAsItWasWritten) {
  const auto read = parse_preface(to_text(whole));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->purpose, whole.purpose);
  EXPECT_EQ(read->name, whole.name);
  EXPECT_EQ(read->incarnation, whole.incarnation);
  EXPECT_EQ(read->versions, whole.versions);
}

TEST(Preface, OfALaterProgramMaySayMore) {
  std::string text = to_text(whole);
  text.insert(text.size() - 1, "color blue\n");
  EXPECT_TRUE(parse_preface(text));
}

TEST(Preface, IsReadOnlyAsAWhole) {
  const std::string text = to_text(whole);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(may_begin_preface(text.substr(0, size)));
    EXPECT_FALSE(parse_preface(text.substr(0, size))) << size;
  }
}

TEST(Preface, CannotBeginWithOtherBytes) {
  for (const char* text : {"h0ne", "hone 2\n", "GET ", "\x16\x03\x01"})
    EXPECT_FALSE(may_begin_preface(text)) << text;
  EXPECT_FALSE(may_begin_preface("hone 1\n" + std::string(max_preface, 'a')));
}

TEST(Preface, HasANameThatIsSafeToPrint) {
  for (const std::string& name : {std::string("a\rb"), std::string("\x1b[2J"), std::string(),
                                  std::string(65, 'a'), std::string("a/b")})
    EXPECT_FALSE(parse_preface("hone 1\npurpose join\nname " + name + "\n\n")) << name;
  EXPECT_TRUE(parse_preface("hone 1\npurpose join\nname gpu-7.lab 42_a\n\n"));
}

TEST(Preface, IsAnsweredByAWelcomeOrAReason) {
  using kind = preface_answer::kind;
  for (const kind what : {kind::welcome, kind::refused, kind::later}) {
    const std::string reason = what == kind::welcome ? "" : "judge version 17, expected 18";
    const auto read = parse_answer(to_text({what, reason}));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->what, what);
    EXPECT_EQ(read->reason, reason);
  }
  EXPECT_FALSE(parse_answer("hello\n\n"));
  EXPECT_FALSE(parse_answer("refused because"));
}

TEST(Versions, ThatDifferAreNamed) {
  EXPECT_EQ(find_version_problem(whole.versions, {{"judge", 18}}), "");
  EXPECT_EQ(find_version_problem(whole.versions, {{"judge", 19}, {"schema", 12}}),
            "judge version 18, expected 19");
  EXPECT_EQ(find_version_problem({}, {{"judge", 19}}), "judge version unknown, expected 19");
}

}  // namespace
}  // namespace hone
