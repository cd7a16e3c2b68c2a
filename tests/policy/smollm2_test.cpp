#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policy/sampling/generation.hpp"
#include "policy/text/text_codec.hpp"

namespace hone {
namespace {

// SmolLM2-135M-Instruct compared with the package `transformers`, whose results are in
// tests/policy/golden/smollm2.json. HONE_SMOLLM2 names the folder that scripts/get-smollm2 has
// made; without it these tests are skipped. HONE_SMOLLM2_GOLDEN names another file of results.
class SmolLm2 : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("HONE_SMOLLM2");
    if (folder == nullptr) GTEST_SKIP() << "HONE_SMOLLM2 names no folder of the model";
    folder_ = folder;
    const char* const results = std::getenv("HONE_SMOLLM2_GOLDEN");
    std::ifstream in(results != nullptr ? results
                                        : HONE_SOURCE_DIR "/tests/policy/golden/smollm2.json");
    golden_ = nlohmann::json::parse(in);
  }
  decoder_config config(const std::string& dtype) const {
    auto c = decoder_config::load(folder_ / "config.json");
    c.dtype = dtype;
    return c;
  }

  std::filesystem::path folder_;
  nlohmann::json golden_;
};

TEST_F(SmolLm2, TokensOfTextCodeAndEmojiAreThoseOfTransformers) {
  const text_codec codec = text_codec::load(folder_, {});
  ASSERT_GE(golden_["lines"].size(), 400U);
  for (const auto& line : golden_["lines"]) {
    const auto text = line["text"].get<std::string>();
    EXPECT_EQ(codec.words().encode(text), line["ids"].get<std::vector<token_id>>()) << text;
  }
}

TEST_F(SmolLm2, GreedyAnswersInFloat32AreThoseOfTransformers) {
  const decoder_config c = config("float32");
  generation_options options;
  options.sampling.temperature = 0;
  options.end_tokens = text_codec::load(folder_, {}).end_tokens();
  options.max_new_tokens = 32;
  generation_engine engine(c, options);
  engine.set_weights(decoder_weights::load(folder_, c), 1);
  const auto& chats = golden_["chats"];
  for (std::size_t i = 0; i < chats.size(); ++i)
    engine.submit({i, chats[i]["ids"].get<std::vector<token_id>>(), 1});
  std::size_t seen = 0;
  while (!engine.idle()) {
    for (const auto& f : engine.step()) {
      EXPECT_EQ(f.completions.front().tokens,
                chats[f.ticket]["greedy"].get<std::vector<token_id>>())
          << chats[f.ticket]["prompt"];
      ++seen;
    }
  }
  EXPECT_EQ(seen, chats.size());
}

TEST_F(SmolLm2, LogitsInBfloat16AreAsExactAsThoseOfTransformers) {
  const decoder exact(config("float32"));
  const auto weights = decoder_weights::load(folder_, exact.config());
  const auto rounded = weights.to("cpu", "bfloat16");
  double ours = 0;
  double theirs = 0;
  for (std::size_t i = 0; i < golden_["chats"].size(); ++i) {
    auto tokens = golden_["chats"][i]["ids"].get<std::vector<std::int64_t>>();
    const auto answer = golden_["chats"][i]["greedy"].get<std::vector<std::int64_t>>();
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    const at::Tensor sequence = at::tensor(tokens, at::kLong).unsqueeze(0);
    ours += (exact.logits(rounded, sequence) - exact.logits(weights, sequence))
                .abs()
                .mean()
                .item<double>();
    theirs += golden_["bfloat16_errors"][i].get<double>();
  }
  EXPECT_LT(ours, 1.1 * theirs);
}

}  // namespace
}  // namespace hone
