#include "ui/parts/token_text.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "messages/record.hpp"
#include "policy/text/tokenizer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/ui/markup.hpp"

namespace hone::parts {
namespace {

using testing_support::parsed;

constexpr token_id mark_token = 256;  // a combining accent in one token
constexpr token_id end_token = 257;

// A tokenizer whose tokens 0 to 255 are the bytes, in GPT-2's spelling.
tokenizer byte_tokenizer() {
  const auto utf8 = [](std::uint32_t code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xC0U | (code >> 6U)),
                       static_cast<char>(0x80U | (code & 0x3FU))};
  };
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  std::uint32_t next = 256;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const bool is_printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    vocabulary[utf8(is_printable ? b : next++)] = b;
  }
  vocabulary[utf8(0xCC) + utf8(0x122)] = mark_token;  // the bytes CC 80
  const nlohmann::ordered_json file = {
      {"model",
       {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::ordered_json::array()}}},
      {"added_tokens", {{{"id", end_token}, {"content", "<|end|>"}, {"special", true}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
  const testing_support::temporary_folder folder;
  testing_support::write_file(folder / "tokenizer.json", file.dump());
  return tokenizer::load(folder / "tokenizer.json");
}

struct token {
  token_id id;
  double log_probability;
};

record<schema::Rollout> rollout_of(const std::vector<token>& tokens, const std::string& text = "") {
  record_builder<schema::Rollout> rollout;
  auto ids = rollout->initTokens(static_cast<unsigned>(tokens.size()));
  auto logs = rollout->initLogProbabilities(static_cast<unsigned>(tokens.size()));
  for (unsigned i = 0; i < tokens.size(); ++i) {
    ids.set(i, tokens[i].id);
    logs.set(i, static_cast<float>(tokens[i].log_probability));
  }
  rollout->setText(text);
  return rollout.finish();
}

std::vector<token> bytes_of(const std::string& text, const std::vector<double>& logs) {
  std::vector<token> tokens;
  for (std::size_t i = 0; i < text.size(); ++i)
    tokens.push_back({static_cast<unsigned char>(text[i]), logs[i % logs.size()]});
  return tokens;
}

class TokenTextTest : public testing::Test {
 protected:
  std::vector<shaded_text> pieces(const std::vector<token>& tokens) const {
    return shaded_pieces(*rollout_of(tokens), words_, 4096);
  }
  std::string html(const std::vector<token>& tokens) const {
    return token_text(*rollout_of(tokens), words_).str();
  }

  tokenizer words_ = byte_tokenizer();
};

TEST_F(TokenTextTest, ShadesAreThoseOfTheLegend) {
  EXPECT_EQ(shade_of(0), 0U);
  EXPECT_EQ(shade_of(-0.05), 0U);
  EXPECT_EQ(shade_of(-0.1), 1U);
  EXPECT_EQ(shade_of(-0.7), 2U);
  EXPECT_EQ(shade_of(-1.5), 3U);
  EXPECT_EQ(shade_of(-2), 4U);
  EXPECT_EQ(shade_of(-std::numeric_limits<double>::infinity()), 4U);
  EXPECT_EQ(shade_of(std::numeric_limits<double>::infinity()), 4U);
  EXPECT_EQ(shade_of(std::numeric_limits<double>::quiet_NaN()), 4U);
  EXPECT_EQ(parsed(shade_legend().str()).error, "");
  EXPECT_NE(shade_legend().str().find("<span class=\"p4\">-2 or less</span>"), std::string::npos);
}

TEST_F(TokenTextTest, MergesNeighborsOfOneShade) {
  EXPECT_EQ(html({{'a', -0.01}, {'b', -0.02}, {'c', -1.23}, {'d', -0.01}}),
            "<pre class=\"prose\"><span class=\"p0\" title=\"-0.02 to -0.01, 2 tokens\">ab</span>"
            "<span class=\"p3\" title=\"-1.23\">c</span>"
            "<span class=\"p0\" title=\"-0.01\">d</span></pre>");
}

TEST_F(TokenTextTest, ShowsTheTokenThatEndsTheAnswer) {
  EXPECT_EQ(html({{'a', -0.01}, {end_token, -0.02}}),
            "<pre class=\"prose\"><span class=\"p0\" title=\"-0.01\">a</span>"
            "<span class=\"p0 special\" title=\"-0.02\">&lt;|end|&gt;</span></pre>");
}

TEST_F(TokenTextTest, CharactersOfSeveralTokensStayWhole) {
  // The euro sign takes three tokens, of which the second is the least likely one.
  const auto made =
      pieces(bytes_of("a\xE2\x82\xAC"
                      "b",
                      {-0.01, -0.2, -3, -0.2, -0.01}));
  ASSERT_EQ(made.size(), 3U);
  EXPECT_EQ(made[1].bytes, "\xE2\x82\xAC");
  EXPECT_EQ(made[1].shade, 4U);
  EXPECT_EQ(made[1].tokens, 3U);
  EXPECT_EQ(made[2].bytes, "b");
}

TEST_F(TokenTextTest, KeepsEveryByteAndCutsNoCharacter) {
  std::vector<std::string> texts = testing_support::hostile_texts();
  texts.insert(texts.end(), {"\xE2", "\xE2\x82", "\xE2\x82z", "\xF0\x9F\xE2\x82\xAC", "\x80\x80",
                             "\xF0\x9F\x98\x80\xF0\x9F\x98", "\xC3\xC3\xA9"});
  for (std::string text : texts) {
    text = text.substr(0, 3000);
    std::string joined;
    std::size_t tokens = 0;
    for (const shaded_text& piece : pieces(bytes_of(text, {-0.01, -5, -0.3}))) {
      joined += piece.bytes;
      tokens += piece.tokens;
    }
    EXPECT_EQ(joined, text);
    EXPECT_EQ(tokens, text.size());
    const auto found = parsed(html(bytes_of(text, {-0.01, -5, -0.3})));
    EXPECT_EQ(found.error, "") << text.substr(0, 50);
  }
  // Characters of valid text are shown, and none is replaced.
  const std::string valid = "\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80";
  EXPECT_EQ(parsed(html(bytes_of(valid, {-0.01, -5}))).text, valid);
}

TEST_F(TokenTextTest, AccentsStayWithTheirLetter) {
  std::vector<token> tower = {{'Z', -0.01}};
  for (int i = 0; i < 1000; ++i) tower.push_back({mark_token, i % 2 == 0 ? -5. : -0.01});
  const auto made = pieces(tower);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].shade, 4U);
  EXPECT_NE(html(tower).find("U+0300×996"), std::string::npos);
}

TEST_F(TokenTextTest, SizeIsBounded) {
  std::vector<token> many;
  for (unsigned i = 0; i < 100'000; ++i) many.push_back({97 + i % 2, i % 3 * -2.});
  const std::string shown = html(many);
  EXPECT_EQ(parsed(shown).error, "");
  EXPECT_LT(shown.size(), 4096U * 70U);
  EXPECT_NE(shown.find("the first 4,096 of 100,000 tokens"), shown.npos);
  const std::string few = token_text(*rollout_of(many), words_, 1000).str();
  EXPECT_LT(few.size(), 1300U);
  EXPECT_EQ(parsed(few).error, "");
  EXPECT_NE(few.find(" of 100,000 tokens"), few.npos);
}

TEST_F(TokenTextTest, TokensAreThoseOfTheText) {
  const auto tokens = bytes_of("abc", {-1});
  EXPECT_TRUE(has_shades(*rollout_of(tokens, "abc"), words_));
  EXPECT_TRUE(has_shades(*rollout_of(tokens, "given abc"), words_));  // a beginning that was given
  EXPECT_TRUE(has_shades(*rollout_of(tokens, "ab"), words_));         // the program's end
  EXPECT_FALSE(has_shades(*rollout_of(tokens, "xyz"), words_));       // another tokenizer's
  EXPECT_FALSE(has_shades(*rollout_of({}, "abc"), words_));           // tokens were removed
  record_builder<schema::Rollout> without(*rollout_of(tokens, "abc"));
  without->initLogProbabilities(2);
  EXPECT_FALSE(has_shades(*without.finish(), words_));
}

TEST_F(TokenTextTest, NumbersThatAreNoneAndUnknownTokensAreShown) {
  const auto shown =
      html({{'a', std::numeric_limits<double>::quiet_NaN()}, {100'000, -1}, {'b', 1}});
  EXPECT_EQ(shown,
            "<pre class=\"prose\"><span class=\"p4\" title=\"-\">a</span>"
            "<span class=\"p0\" title=\"1.00\">b</span></pre>");
}

}  // namespace
}  // namespace hone::parts
