#include "policy/text/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "policy/text/pre_tokenizer.hpp"
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
            R"("merges":["a b"]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}})");
    return tokenizer::load(folder / "tokenizer.json").encode("xyabzb");
  };
  EXPECT_THAT(ids_of(false), testing::ElementsAre(0, 0, 3, 0, 2));
  EXPECT_THAT(ids_of(true), testing::ElementsAre(0, 3, 0, 2));
}

TEST(Tokenizer, RefusesWhatTheTokenizersPackageReadsOtherwise) {
  const testing_support::temporary_folder folder;
  const nlohmann::json good = {
      {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", {"a b"}}}},
      {"added_tokens", {{{"id", 3}, {"content", "<s>"}, {"special", true}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
  const auto error_of = [&](const nlohmann::json& patch, const std::string& settings = "{}") {
    nlohmann::json file = good;
    file.merge_patch(patch);
    std::ofstream(folder / "tokenizer.json") << file;
    testing_support::write_file(folder / "tokenizer_config.json", settings);
    return testing_support::refusal_of<policy_error>(
        [&] { tokenizer::load(folder / "tokenizer.json"); });
  };
  const auto split = [](const std::string& regex) {
    return nlohmann::json::parse(R"({"pre_tokenizer":{"type":"Sequence","pretokenizers":[
        {"type":"Split","pattern":{"Regex":)" +
                                 nlohmann::json(regex).dump() +
                                 R"(},"behavior":"Isolated"},
        {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}})");
  };
  using testing::HasSubstr;
  EXPECT_EQ(error_of(nlohmann::json::object()), "");
  EXPECT_THAT(error_of({{"pre_tokenizer", nullptr}}), HasSubstr("ByteLevel"));
  EXPECT_THAT(error_of({{"pre_tokenizer", {{"type", "Digits"}}}}), HasSubstr("ByteLevel"));
  EXPECT_THAT(error_of({{"model", {{"dropout", 0.5}}}}), HasSubstr("dropout"));
  EXPECT_EQ(error_of({{"model", {{"dropout", nullptr}, {"end_of_word_suffix", ""}}}}), "");
  EXPECT_THAT(error_of({{"model", {{"end_of_word_suffix", "</w>"}}}}), HasSubstr("end_of_word"));
  for (const char* regex : {"\\h+", "[\\p{L}&&[^a]]+", "\\p{N}{0,3}", "(?=a)|b?", "(?i:ss)"})
    EXPECT_THAT(error_of(split(regex)), HasSubstr("not supported")) << regex;
  EXPECT_EQ(error_of(split("\\\\h|[a&]|a{1,3}")), "");
  EXPECT_THAT(error_of(nlohmann::json::parse(
                  R"({"post_processor":{"type":"TemplateProcessing","special_tokens":{},"single":[
              {"Sequence":{"id":"A"}},{"SpecialToken":{"id":"<s>"}}]}})")),
              HasSubstr("behind a text"));
  const auto added = [](int id, const char* text) {
    return nlohmann::json{{"added_tokens", {{{"id", id}, {"content", text}}}}};
  };
  EXPECT_THAT(error_of(added(5, "<s>")), HasSubstr("the next one")) << "a gap";
  EXPECT_THAT(error_of(added(1, "<s>")), HasSubstr("'<s>' has the id 1, expected 3"));
  EXPECT_THAT(error_of(added(3, "ab")), HasSubstr("as in the vocabulary"));
  EXPECT_EQ(error_of(added(2, "ab")), "");
  const auto none = nlohmann::json::object();
  EXPECT_EQ(error_of(none, R"({"bos_token":"<s>","eos_token":null,"add_bos_token":true})"), "");
  EXPECT_THAT(error_of(none, R"({"eos_token":"</s>"})"), HasSubstr("'</s>' is no token of"));
  EXPECT_THAT(error_of(none, R"({"additional_special_tokens":["<t>"]})"), HasSubstr("'<t>'"));
  EXPECT_THAT(error_of(none, R"({"added_tokens_decoder":{"4":{"content":"<s>"}}})"),
              HasSubstr("has the id 4, and 3"));
  EXPECT_THAT(error_of(none, "{"), HasSubstr("tokenizer_config.json: is no JSON"));
}

TEST(Tokenizer, CutsLongTextsOrSaysThatItCannot) {
  const pattern letters(R"((?:\p{L}\p{M}*)+|[^\p{L}]+)");
  for (const std::size_t size : {500, 5000, 50000})
    EXPECT_EQ(letters.matches(std::string(size, 'a') + " b").size(), 3U) << size;
  const pattern slow(R"((?:a+)+b|[\s\S])");
  EXPECT_THROW(slow.matches(std::string(40, 'a')), policy_error);
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
