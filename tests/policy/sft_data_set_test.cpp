#include "policy/sft_data_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace hone {
namespace {

std::string numbered(std::string text, int number) { return text.append(std::to_string(number)); }

class SftDataSet : public testing::Test {
 protected:
  SftDataSet() {
    for (const char* task : {"softmax", "layer_norm"}) {
      facts_[task].task_name = task;
      facts_[task].device_type = "unset";
    }
  }
  sft_data_set make(double exemplar_share) {
    sft_data_set s(words_, 1, prompts_, facts_, {exemplar_share, 2});
    for (int i = 0; i < 6; ++i)
      s.add({i < 4 ? "softmax" : "layer_norm",
             "cpu",
             numbered("document ", i),
             {static_cast<double>(10 - i), numbered("code ", i)}});
    return s;
  }
  std::string text(const std::vector<token_id>& tokens) const { return words_.decode(tokens); }

  tokenizer words_ = tokenizer::load(HONE_SOURCE_DIR "/configs/policies/tiny/tokenizer.json");
  prompt_template prompts_ = prompt_template::parse(
      "{{task}} {{device}}\n{{#exemplars}}\n{{score}} {{code}}\n{{/exemplars}}\n", "test");
  std::map<std::string, prompt_facts> facts_;
  std::mt19937_64 random_{1};
};

TEST_F(SftDataSet, DrawsEveryDocumentOncePerEpoch) {
  sft_data_set s = make(0.5);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<std::vector<token_id>> seen;
    for (std::size_t i = 0; i < s.size(); ++i) seen.insert(s.next(random_).completion);
    EXPECT_EQ(seen.size(), s.size());
  }
}

TEST_F(SftDataSet, DrawsALateDocumentMoreOftenToCatchUp) {
  sft_data_set s = make(0);
  for (int i = 0; i < 60; ++i) s.next(random_);
  s.add({"softmax", "cpu", "late", {1, "late"}});
  int late = 0;
  for (int i = 0; i < 140; ++i)
    late += text(s.next(random_).completion).starts_with("late") ? 1 : 0;
  EXPECT_GT(late, 25) << "an equal share would be 140 / 7 = 20";
}

TEST_F(SftDataSet, EndsEveryDocumentWithTheEndToken) {
  EXPECT_EQ(make(0).next(random_).completion.back(), 1);
}

TEST_F(SftDataSet, ShowsTwoOtherDocumentsOfTheSameTaskWithTheBetterOneLast) {
  sft_data_set s = make(1);
  for (int i = 0; i < 60; ++i) {
    const sft_example e = s.next(random_);
    const std::string prompt = text(e.prompt);
    const char own = text(e.completion)[9];
    EXPECT_EQ(prompt.find(std::string{'c', 'o', 'd', 'e', ' ', own}), std::string::npos)
        << "a document is not an exemplar in its own prompt";
    const std::size_t first = prompt.find("code ");
    ASSERT_NE(first, std::string::npos);
    const std::size_t second = prompt.find("code ", first + 1);
    const bool is_softmax = prompt.starts_with("softmax");
    EXPECT_EQ(second != std::string::npos, is_softmax) << "layer_norm has only one other document";
    if (is_softmax) {
      EXPECT_GT(prompt[first + 5], prompt[second + 5]) << "the score of document i is 10 - i";
    }
    EXPECT_EQ(own < '4', is_softmax);
  }
}

TEST_F(SftDataSet, ShowsNoExemplarsIfTheShareIsZero) {
  sft_data_set s = make(0);
  for (int i = 0; i < 12; ++i)
    EXPECT_THAT(text(s.next(random_).prompt), testing::Not(testing::HasSubstr("code")));
}

TEST_F(SftDataSet, NamesTheDeviceTypeThatADocumentWasJudgedOn) {
  EXPECT_THAT(text(make(0).next(random_).prompt), testing::HasSubstr("cpu"));
}

}  // namespace
}  // namespace hone
