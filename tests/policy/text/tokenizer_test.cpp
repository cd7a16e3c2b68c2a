#include "policy/text/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/policy_folders.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::golden;

class GoldenTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenizer, MatchesTheIdsAndTextsOfTheTokenizersPackage) {
  const auto t = tokenizer::load(golden / ("tokenizer_" + std::string(GetParam()) + ".json"));
  std::ifstream in(golden / ("tokenizer_" + std::string(GetParam()) + ".golden.json"));
  for (const auto& entry : nlohmann::json::parse(in)) {
    const auto text = entry["text"].get<std::string>();
    EXPECT_EQ(t.encode(text), entry["ids"].get<std::vector<token_id>>()) << text;
    // The package replaces bytes that are not UTF-8, as a vocabulary without some bytes makes them.
    const auto decoded = entry["decoded"].get<std::string>();
    if (decoded.find("\xEF\xBF\xBD") != std::string::npos) continue;
    EXPECT_EQ(t.decode(entry["ids"].get<std::vector<token_id>>()), decoded) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTokenizer,
                         testing::Values("llama3", "gpt2_nfc", "lines", "partial"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(Tokenizer, DecodingInvertsEncodingAndInvalidUtf8IsReplaced) {
  const auto t = tokenizer::load(golden / "tokenizer_lines.json");
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (std::size_t i = random() % 60; i > 0; --i) text += static_cast<char>(32 + random() % 95);
    EXPECT_EQ(t.decode(t.encode(text)), text);
  }
  EXPECT_EQ(t.decode(t.encode("a\xff"
                              "b")),
            "a\xEF\xBF\xBD"
            "b");
}

// A tokenizer of four tokens whose one merge makes the two bytes of U+00B2, a digit, one token. The
// character that represents the second byte is that digit as well.
tokenizer squared(const nlohmann::json& pre_tokenizers) {
  const testing_support::temporary_folder folder;
  const nlohmann::json file = {
      {"model",
       {{"type", "BPE"},
        {"ignore_merges", nullptr},
        {"vocab", {{"m", 0}, {"\u00c2", 1}, {"\u00b2", 2}, {"\u00c2\u00b2", 3}, {"\u0120", 4}}},
        {"merges", nlohmann::json::array({nlohmann::json::array({"\u00c2", "\u00b2"})})}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", pre_tokenizers}}}};
  std::ofstream(folder / "tokenizer.json") << file;
  return tokenizer::load(folder / "tokenizer.json");
}

TEST(Tokenizer, KeepsTheOrderOfItsPreTokenizers) {
  using testing::ElementsAre;
  const nlohmann::json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const nlohmann::json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const std::string text = "m\u00b2";
  EXPECT_THAT(squared({digits, bytes}).encode(text), ElementsAre(0, 3));
  EXPECT_THAT(squared({bytes, digits}).encode(text), ElementsAre(0, 1, 2))
      << "it cuts between the characters that stand for the bytes";
  nlohmann::json spaced = bytes;
  spaced["add_prefix_space"] = true;
  EXPECT_THAT(squared({digits, spaced}).encode(text), ElementsAre(4, 0, 4, 3))
      << "every piece gets a space";
}

TEST(Tokenizer, FindsSpecialTokensAndOmitsThemFromTheText) {
  const auto t = tokenizer::load(golden / "tokenizer_lines.json");
  EXPECT_EQ(t.id_of("<|begin|>"), 0);
  EXPECT_EQ(t.id_of("<|end|>"), 1);
  EXPECT_EQ(t.id_of("<|nothing|>"), -1);
  EXPECT_EQ(t.vocabulary_size(), 420U);
  EXPECT_EQ(t.decode({0, 1, 999999}), "");
}

TEST(Tokenizer, ReadsAVocabularyThatLacksBytesAndTheTokenOfATextsBeginning) {
  const auto t = tokenizer::load(golden / "tokenizer_partial.json");
  EXPECT_GT(t.missing_bytes(), 100U);
  EXPECT_EQ(t.decode(t.encode("a\x01"
                              "b")),
            "ab")
      << "a byte without a token is left out";
  EXPECT_THAT(t.before_text(), testing::ElementsAre(0));
  EXPECT_THAT(tokenizer::load(golden / "tokenizer_lines.json").before_text(), testing::IsEmpty());
}

TEST(Tokenizer, AnUnknownTokenStandsForBytesWithoutOne) {
  const testing_support::temporary_folder folder;
  const auto ids_of = [&](bool fuses) {
    testing_support::write_file(
        folder / "tokenizer.json",
        std::string(R"({"model":{"type":"BPE","unk_token":"<u>","fuse_unk":)") +
            (fuses ? "true" : "false") + R"(,"vocab":{"<u>":0,"a":1,"b":2,"ab":3},)" +
            R"("merges":["a b"]}})");
    return tokenizer::load(folder / "tokenizer.json").encode("xyabzb");
  };
  EXPECT_THAT(ids_of(false), testing::ElementsAre(0, 0, 3, 0, 2));
  EXPECT_THAT(ids_of(true), testing::ElementsAre(0, 3, 0, 2));
}

TEST(Tokenizer, EncodesVeryLongPiecesInTime) {
  const auto t = tokenizer::load(golden / "tokenizer_lines.json");
  EXPECT_EQ(t.decode(t.encode(std::string(200000, 'q'))).size(), 200000U);
}

TEST(Tokenizer, DamagedFilesAreNamed) {
  const testing_support::temporary_folder folder;
  const std::string bytes = testing_support::read_file(golden / "tokenizer_lines.json");
  const auto error_of = [&](const std::string& text) {
    testing_support::write_file(folder / "tokenizer.json", text);
    return testing_support::refusal_of<policy_error>(
        [&] { tokenizer::load(folder / "tokenizer.json"); });
  };
  EXPECT_EQ(error_of(bytes), "");
  for (std::size_t size = 0; size < bytes.size(); size += 997)
    EXPECT_THAT(error_of(bytes.substr(0, size)), testing::HasSubstr("tokenizer.json")) << size;
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
    error_of(damaged);  // must not crash; a flipped bit in a token's text is undetectable
  }
  EXPECT_THAT(error_of(R"({"model":{"type":"Unigram"}})"), testing::HasSubstr("Unigram"));
  EXPECT_THAT(error_of(R"({"model":{"vocab":{},"merges":[]}})"), testing::HasSubstr("byte-level"));
}

}  // namespace
}  // namespace hone
