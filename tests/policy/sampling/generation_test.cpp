#include "policy/sampling/generation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/policy_folders.hpp"

namespace hone {
namespace {

using testing_support::golden;

class GenerationTest : public testing::Test {
 protected:
  GenerationTest()
      : config_(decoder_config::load(golden / "llama/config.json")),
        weights_(decoder_weights::load(golden / "llama", config_)) {}

  std::map<std::uint64_t, std::vector<completion>> run(generation_engine& engine) {
    std::map<std::uint64_t, std::vector<completion>> finished;
    while (!engine.idle()) {
      for (auto& f : engine.step()) finished[f.ticket] = std::move(f.completions);
    }
    return finished;
  }
  decoder_config config_;
  decoder_weights weights_;
};

TEST_F(GenerationTest, MoreRequestsThanSlotsAllFinish) {
  generation_options options;
  options.slots = 5;
  options.max_new_tokens = 15;
  options.end_tokens = {7};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  for (std::uint64_t t = 0; t < 12; ++t)
    engine.submit({t, std::vector<token_id>(1 + t % 4, static_cast<token_id>(t)),
                   1 + static_cast<std::uint32_t>(t % 6)});
  const auto finished = run(engine);
  ASSERT_EQ(finished.size(), 12U);
  std::uint64_t tokens = 0;
  for (const auto& [ticket, completions] : finished) {
    EXPECT_EQ(completions.size(), 1 + ticket % 6);
    for (const completion& c : completions) {
      EXPECT_EQ(c.tokens.size(), c.log_probabilities.size());
      EXPECT_LE(c.tokens.size(), 15U);
      EXPECT_EQ(c.truncated, c.tokens.back() != 7U);
      for (std::size_t i = 0; i + 1 < c.tokens.size(); ++i)
        EXPECT_NE(c.tokens[i], 7U) << "no token follows the end token";
      tokens += c.tokens.size();
    }
  }
  EXPECT_EQ(engine.tokens_generated(), tokens);
}

TEST_F(GenerationTest, NewWeightsApplyFromTheNextToken) {
  generation_options options;
  options.max_new_tokens = 10;
  options.end_tokens = {100000};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  engine.submit({1, {1, 2, 3}, 2});
  for (int i = 0; i < 4; ++i) engine.step();
  engine.set_weights(decoder_weights::random(config_, 9), 2);
  const auto finished = run(engine);
  for (const completion& c : finished.at(1)) {
    ASSERT_EQ(c.versions.size(), 2U);
    EXPECT_EQ(c.versions[0].first, 1U);
    EXPECT_EQ(c.versions[0].second, 4U);
    EXPECT_EQ(c.versions[1].first, 2U);
    EXPECT_EQ(c.versions[1].second, 6U);
  }
}

TEST_F(GenerationTest, ASampleThatBeginsLateSaysWhichVersionDrewItsFirstToken) {
  generation_options options;
  options.max_new_tokens = 5;
  options.slots = 1;
  options.end_tokens = {100000};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  engine.submit({1, {1, 2, 3}, 2});
  for (int i = 0; i < 3; ++i) engine.step();
  engine.set_weights(decoder_weights::random(config_, 9), 2);
  const auto finished = run(engine);
  const completion& late = finished.at(1).at(1);
  ASSERT_EQ(late.versions.size(), 2U) << "the first version has read the prompt";
  EXPECT_EQ(late.versions[0], (std::pair<std::uint64_t, std::uint32_t>(1, 1)));
  EXPECT_EQ(late.versions[1], (std::pair<std::uint64_t, std::uint32_t>(2, 4)));
}

TEST_F(GenerationTest, SamplesFollowTheRecordedDistribution) {
  for (const double top_p : {1.0, 0.5}) {
    generation_options options;
    options.max_new_tokens = 1;
    options.slots = 64;
    options.end_tokens = {100000};
    options.sampling.top_p = top_p;
    generation_engine engine(config_, options);
    engine.set_weights(weights_, 1);
    engine.submit({1, {4, 8}, 4000});
    std::map<token_id, std::pair<int, double>> seen;
    const auto finished = run(engine);
    double total = 0;
    for (const completion& c : finished.at(1)) {
      auto& [count, probability] = seen[c.tokens[0]];
      if (count++ > 0) continue;
      probability = std::exp(c.log_probabilities[0]);
      total += probability;
    }
    for (const auto& [token, entry] : seen) {
      const double expected = entry.second * 4000;
      EXPECT_NEAR(entry.first, expected, 5 * std::sqrt(expected) + 2)
          << "token " << token << ", top_p " << top_p;
    }
    EXPECT_NEAR(total, 1, 0.05) << "nearly all tokens of the distribution were seen";
  }
}

TEST_F(GenerationTest, SmallTopPKeepsOnlyTheMostLikelyToken) {
  generation_options options;
  options.max_new_tokens = 1;
  options.slots = 64;
  options.sampling.top_p = 1e-6;
  options.end_tokens = {100000};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  engine.submit({1, {4, 8}, 50});
  const auto finished = run(engine);
  const token_id first = finished.at(1)[0].tokens[0];
  for (const completion& c : finished.at(1)) {
    EXPECT_EQ(c.tokens[0], first);
    EXPECT_NEAR(c.log_probabilities[0], 0, 1e-6) << "the only token of the nucleus is certain";
  }
}

TEST_F(GenerationTest, WritesGreedyAndSampledCompletionsSideBySide) {
  generation_options options;
  options.max_new_tokens = 6;
  options.slots = 64;
  options.end_tokens = {100000};
  generation_options only_greedy = options;
  only_greedy.sampling.temperature = 0;
  generation_engine reference(config_, only_greedy);
  reference.set_weights(weights_, 1);
  reference.submit({1, {4, 8}, 1});
  const auto expected = run(reference).at(1)[0];
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  engine.submit({1, {4, 8}, 20});
  engine.submit({2, {4, 8}, 2, answer_room::any, true});
  const auto finished = run(engine);
  for (const completion& c : finished.at(2)) {
    EXPECT_EQ(c.tokens, expected.tokens);
    for (std::size_t i = 0; i < c.tokens.size(); ++i)
      EXPECT_NEAR(c.log_probabilities[i], expected.log_probabilities[i], 1e-4);
  }
  std::size_t different = 0;
  for (const completion& c : finished.at(1)) different += c.tokens != expected.tokens ? 1 : 0;
  EXPECT_GT(different, 10U);
}

TEST_F(GenerationTest, AFullContextEndsACompletionAndRefusesAPrompt) {
  generation_options options;
  options.max_new_tokens = 1000;
  options.end_tokens = {100000};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  engine.submit({1, std::vector<token_id>(60, 3), 1});
  const auto finished = run(engine);
  EXPECT_TRUE(finished.at(1)[0].truncated);
  EXPECT_LE(finished.at(1)[0].tokens.size(), 4U);
  EXPECT_THROW(engine.submit({2, std::vector<token_id>(64, 3), 1}), policy_error);
  EXPECT_THROW(engine.submit({3, {}, 1}), policy_error);
}

TEST_F(GenerationTest, ACompletionEndsWhereItIsSaidToBeComplete) {
  generation_options options;
  options.max_new_tokens = 20;
  options.end_tokens = {100000};
  options.is_complete = [](const std::vector<token_id>& tokens) { return tokens.size() == 7; };
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  engine.submit({1, {1, 2, 3}, 4});
  const auto finished = run(engine);
  for (const completion& c : finished.at(1)) {
    EXPECT_EQ(c.tokens.size(), 7U);
    EXPECT_FALSE(c.truncated);
  }
}

}  // namespace
}  // namespace hone
