#include "policy/training/sft_data_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/policy_folders.hpp"

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
    sft_data_set s(codec_, prompts_, facts_, {exemplar_share, 2});
    for (int i = 0; i < 6; ++i)
      s.add({i < 4 ? "softmax" : "layer_norm",
             "cpu",
             numbered("document ", i),
             {static_cast<double>(10 - i), numbered("code ", i)}});
    return s;
  }
  std::string text(const std::vector<token_id>& tokens) const { return codec_.decode(tokens); }

  text_codec codec_ = text_codec::load(testing_support::tiny, {});
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

TEST_F(SftDataSet, ShowsDocumentsOfTheSameTaskThatAreNotFasterWithTheBetterOneLast) {
  sft_data_set s = make(1);
  for (int i = 0; i < 60; ++i) {
    const sft_example e = s.next(random_);
    const std::string prompt = text(e.prompt);
    const char own = text(e.completion)[9];
    EXPECT_EQ(own < '4', prompt.starts_with("softmax"));
    std::string shown;  // numbers of the exemplars; the score of document i is 10 - i
    for (std::size_t at = prompt.find("code "); at != std::string::npos;
         at = prompt.find("code ", at + 1))
      shown += prompt[at + 5];
    const std::size_t slower = own < '4' ? '3' - own : '5' - own;
    EXPECT_EQ(shown.size(), std::min<std::size_t>(slower, 2));
    for (const char number : shown) EXPECT_GT(number, own) << "an exemplar is faster";
    EXPECT_TRUE(std::is_sorted(shown.rbegin(), shown.rend()));
  }
}

TEST_F(SftDataSet, LeavesOutTheWorseExemplarsWhereAPairDoesNotFit) {
  // Returns how often prompts show the exemplars that the letters stand for, and the longest pair.
  const auto draw = [&](std::size_t context) {
    sft_data_set s(codec_, prompts_, facts_, {1, 2, context});
    for (int i = 0; i < 3; ++i)
      s.add({"softmax", "cpu", "document", {1.0 + i, numbered("code ", i)}});
    std::map<std::string, int> shown;
    std::size_t longest = 0;
    for (int i = 0; i < 30; ++i) {
      const sft_example e = s.next(random_);
      longest = std::max(longest, e.prompt.size() + e.completion.size());
      std::string numbers;
      for (const char number : {'0', '1'}) {
        if (text(e.prompt).find(std::string("code ") + number) != std::string::npos)
          numbers += number;
      }
      ++shown[numbers];
    }
    return std::pair(shown, longest);
  };
  const auto [all, longest] = draw(0);
  EXPECT_EQ(all.count("01"), 1U);
  const auto [fitting, shorter] = draw(longest - 1);
  EXPECT_LT(shorter, longest);
  EXPECT_EQ(fitting.count("01"), 0U);
  EXPECT_EQ(fitting.count("1"), 1U) << "the better one stays";
}

TEST_F(SftDataSet, NeverShowsTheProgramThatFollows) {
  sft_data_set s(codec_, prompts_, facts_, {1, 2});
  for (int i = 0; i < 3; ++i)
    s.add({"softmax", "cpu", numbered("words ", i), {2, "the same program"}});
  s.add({"softmax", "cpu", "words 3", {2, "another program"}});
  for (int i = 0; i < 20; ++i) {
    const sft_example e = s.next(random_);
    const bool is_other = text(e.completion).starts_with("words 3");
    EXPECT_EQ(text(e.prompt).find("the same program") != std::string::npos, is_other);
    EXPECT_EQ(text(e.prompt).find("another program") != std::string::npos, !is_other);
  }
}

TEST_F(SftDataSet, ContinuesFromItsState) {
  sft_data_set a = make(0.5);
  for (int i = 0; i < 9; ++i) a.next(random_);
  sft_data_set b(codec_, prompts_, facts_, {0.5, 2});
  b.restore(a.state());
  for (int i = 0; i < 6; ++i)
    b.add({i < 4 ? "softmax" : "layer_norm",
           "cpu",
           numbered("document ", i),
           {static_cast<double>(10 - i), numbered("code ", i)}});
  std::mt19937_64 same = random_;
  for (int i = 0; i < 20; ++i) {
    const sft_example one = a.next(random_);
    const sft_example other = b.next(same);
    EXPECT_EQ(one.prompt, other.prompt);
    EXPECT_EQ(one.completion, other.completion);
  }
}

TEST_F(SftDataSet, UsesAStateOfOtherDocumentsAsFarAsItFits) {
  sft_data_set s = make(0);
  s.next(random_);
  const std::string state = s.state();
  for (const std::string& other : {state, std::string(), std::string("3 1 2"), std::string("x")}) {
    sft_data_set small(codec_, prompts_, facts_, {0, 2});
    small.restore(other);
    small.add({"softmax", "cpu", "the only document", {1, "code"}});
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(text(small.next(random_).completion).starts_with("the only document"));
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
