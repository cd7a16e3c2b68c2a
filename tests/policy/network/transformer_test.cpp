#include "policy/network/transformer.hpp"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "policy/sampling/generation.hpp"
#include "policy/text/tokenizer.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;
using testing_support::write_file;

using testing_support::golden;

class GoldenDecoder : public testing::TestWithParam<const char*> {
 protected:
  GoldenDecoder()
      : folder_(golden / GetParam()),
        config_(decoder_config::load(folder_ / "config.json")),
        weights_(decoder_weights::load(folder_, config_)) {
    std::ifstream in(folder_ / "golden.json");
    expected_ = nlohmann::json::parse(in);
  }
  at::Tensor tokens() const {
    std::vector<std::int64_t> flat;
    for (const auto& row : expected_["tokens"]) {
      for (const auto& token : row) flat.push_back(token.get<std::int64_t>());
    }
    return at::tensor(flat, at::kLong)
        .view({static_cast<std::int64_t>(expected_["tokens"].size()), -1});
  }
  std::filesystem::path folder_;
  decoder_config config_;
  decoder_weights weights_;
  nlohmann::json expected_;
};

TEST_P(GoldenDecoder, MatchesTheLogitsOfTransformers) {
  const decoder network(config_);
  const at::Tensor logits = network.logits(weights_, tokens()).reshape({-1, config_.vocabulary});
  std::vector<double> flat;
  for (const auto& row : expected_["logits"]) {
    for (const auto& value : row) flat.push_back(value.get<double>());
  }
  const at::Tensor reference = at::tensor(flat, at::kDouble).view({-1, config_.vocabulary});
  // The tolerance suits float32 logits of up to about 10.
  EXPECT_LT((logits.to(at::kDouble) - reference).abs().max().item<double>(), 2e-4);
}

TEST_P(GoldenDecoder, LogitsAtSomePositionsAreRowsOfAllLogits) {
  const decoder network(config_);
  const at::Tensor rows = at::tensor(std::vector<std::int64_t>{3, 17, 41}, at::kLong);
  const at::Tensor all =
      network.logits(weights_, tokens()).reshape({-1, config_.vocabulary}).index_select(0, rows);
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(tokens().size(0)),
                                          tokens().size(1));
  EXPECT_LT(
      (network.head(weights_, network.hidden_at(weights_, tokens().reshape({-1}), lengths, rows)) -
       all)
          .abs()
          .max()
          .item<double>(),
      1e-5);
}

TEST_P(GoldenDecoder, ConcatenatedSequencesDoNotAttendToEachOther) {
  const decoder network(config_);
  const at::Tensor first = tokens().select(0, 0);
  const at::Tensor second = tokens().select(0, 1).narrow(0, 0, 5);
  const at::Tensor together = at::cat({first, second});
  const std::vector<std::int64_t> lengths = {first.size(0), 5};
  const at::Tensor rows = at::arange(first.size(0) + 5, at::kLong);
  const at::Tensor apart = at::cat({network.logits(weights_, first.unsqueeze(0)).select(0, 0),
                                    network.logits(weights_, second.unsqueeze(0)).select(0, 0)});
  EXPECT_LT((network.head(weights_, network.hidden_at(weights_, together, lengths, rows)) - apart)
                .abs()
                .max()
                .item<double>(),
            1e-5);
}

TEST_P(GoldenDecoder, MatchesTheGreedyDecodingOfTransformers) {
  generation_options options;
  options.sampling.temperature = 0;
  options.max_new_tokens = 20;
  options.slots = 3;
  options.end_tokens = {100000};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 5);
  std::vector<token_id> prompt;
  for (int i = 0; i < 5; ++i) prompt.push_back(expected_["tokens"][0][i].get<token_id>());
  engine.submit({1, prompt, 2});
  // A second prompt of another length must not change the completions of the first.
  std::vector<token_id> other(prompt.begin(), prompt.begin() + 2);
  engine.submit({2, other, 3});
  std::map<std::uint64_t, std::vector<completion>> finished;
  while (!engine.idle()) {
    for (auto& f : engine.step()) finished[f.ticket] = std::move(f.completions);
  }
  const auto greedy = expected_["greedy"].get<std::vector<token_id>>();
  ASSERT_EQ(finished.at(1).size(), 2U);
  for (const completion& c : finished.at(1)) {
    EXPECT_EQ(c.tokens, greedy);
    EXPECT_TRUE(c.truncated);
  }
  EXPECT_EQ(finished.at(2).size(), 3U);
}

TEST_P(GoldenDecoder, RecordedLogProbabilitiesMatchThoseOfTheWholeSequence) {
  generation_options options;
  options.max_new_tokens = 12;
  options.sampling.temperature = 0.8;
  options.seed = 4;
  options.end_tokens = {100000};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 9);
  std::vector<token_id> prompt = {3, 1, 4, 1, 5};
  engine.submit({1, prompt, 4});
  std::vector<completion> completions;
  while (!engine.idle()) {
    for (auto& f : engine.step()) completions = std::move(f.completions);
  }
  const decoder network(config_);
  for (const completion& c : completions) {
    std::vector<std::int64_t> all(prompt.begin(), prompt.end());
    all.insert(all.end(), c.tokens.begin(), c.tokens.end());
    const at::Tensor logits =
        network.logits(weights_, at::tensor(all, at::kLong).unsqueeze(0)).squeeze(0);
    const at::Tensor log_probabilities = at::log_softmax(logits / 0.8, -1);
    for (std::size_t i = 0; i < c.tokens.size(); ++i) {
      const double expected =
          log_probabilities[static_cast<std::int64_t>(prompt.size() + i - 1)][c.tokens[i]]
              .item<double>();
      EXPECT_NEAR(c.log_probabilities[i], expected, 2e-4);
    }
    EXPECT_EQ(c.versions, (std::vector<std::pair<std::uint64_t, std::uint32_t>>{{9, 12}}));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenDecoder,
                         testing::Values("llama", "llama_adapters", "llama_tied_scaled", "qwen2",
                                         "qwen3"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(DecoderWeights, SavedWeightsLoadUnchanged) {
  const temporary_folder folder;
  const auto config = decoder_config::load(golden / "qwen3/config.json");
  const auto weights = decoder_weights::random(config, 3);
  weights.save(folder / "model.safetensors");
  const auto again = decoder_weights::load(folder.path(), config);
  ASSERT_EQ(again.all().size(), weights.all().size());
  for (const auto& [name, tensor] : weights.all())
    EXPECT_TRUE(at::equal(tensor, again.all().at(name))) << name;
  EXPECT_EQ(again.parameters(), weights.parameters());
}

TEST(DecoderWeights, EqualSeedsGiveEqualWeights) {
  const auto config = decoder_config::load(golden / "llama/config.json");
  const auto a = decoder_weights::random(config, 3);
  const auto b = decoder_weights::random(config, 3);
  const auto c = decoder_weights::random(config, 4);
  EXPECT_TRUE(at::equal(a.all().at("lm_head.weight"), b.all().at("lm_head.weight")));
  EXPECT_FALSE(at::equal(a.all().at("lm_head.weight"), c.all().at("lm_head.weight")));
}

std::string load_error(const std::filesystem::path& folder, const decoder_config& config) {
  return testing_support::refusal_of<policy_error>([&] { decoder_weights::load(folder, config); });
}

TEST(DecoderWeights, DamagedFilesAreNamed) {
  const temporary_folder folder;
  const auto config = decoder_config::load(golden / "llama/config.json");
  EXPECT_THAT(load_error(folder / "nothing", config), testing::HasSubstr("no *.safetensors"));
  const std::string bytes = testing_support::read_file(golden / "llama/model.safetensors");
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    write_file(folder / "model.safetensors", bytes.substr(0, size));
    EXPECT_THAT(load_error(folder.path(), config), testing::HasSubstr("model.safetensors")) << size;
  }
  auto wider = config;
  wider.width = 32;
  EXPECT_THAT(load_error(golden / "llama", wider), testing::HasSubstr("another shape"));
  auto deeper = config;
  deeper.layers = 3;
  EXPECT_THAT(load_error(golden / "llama", deeper), testing::HasSubstr("is missing"));
}

TEST(DecoderConfig, NamesTheWrongKey) {
  const temporary_folder folder;
  const auto error_of = [&](const std::string& text) {
    write_file(folder / "config.json", text);
    return testing_support::refusal_of<policy_error>(
        [&] { decoder_config::load(folder / "config.json"); });
  };
  EXPECT_THAT(error_of("{"), testing::HasSubstr("is no JSON"));
  EXPECT_THAT(error_of("[]"), testing::HasSubstr("no JSON object"));
  EXPECT_EQ(error_of(R"({"model_type":"llama"})"), "")
      << "keys that are absent have the defaults of the type";
  EXPECT_THAT(error_of("{}"), testing::HasSubstr("model_type: is missing"));
  const std::string good =
      R"("vocab_size":8,"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,)"
      R"("intermediate_size":8,"model_type":"llama")";
  EXPECT_EQ(error_of("{" + good + "}"), "");
  EXPECT_THAT(error_of(R"({"model_type":"gpt2"})"), testing::HasSubstr("'gpt2' is not supported"));
  EXPECT_THAT(error_of("{" + good + R"(,"hidden_act":"gelu"})"), testing::HasSubstr("hidden_act"));
  EXPECT_THAT(error_of("{" + good + R"(,"num_key_value_heads":3})"),
              testing::HasSubstr("must divide"));
  EXPECT_THAT(error_of("{" + good + R"(,"rope_scaling":{"rope_type":"yarn"}})"),
              testing::HasSubstr("'yarn' is not supported"));
  const auto error_with = [&](const char* more) { return error_of("{" + good + "," + more + "}"); };
  EXPECT_THAT(error_with(R"("rms_norm_eps":"small")"),
              testing::HasSubstr("rms_norm_eps: has \"small\", expected a number"));
  EXPECT_THAT(error_with(R"("rms_norm_eps":null)"), testing::HasSubstr("rms_norm_eps: has null"));
  EXPECT_THAT(error_with(R"("dtype":"auto")"), testing::HasSubstr("dtype: has 'auto'"));
  EXPECT_THAT(error_with(R"("quantization_config":{"quant_method":"fp8"})"),
              testing::HasSubstr("quantization_config"));
  for (const char* rope : {R"({"rope_type":"linear"})", R"({"type":"llama3","factor":8})"})
    EXPECT_THAT(error_with((std::string(R"("rope_scaling":)") + rope).c_str()),
                testing::HasSubstr("is missing, and has no default"));
}

TEST(DecoderConfig, RefusesWhatTransformersComputesOtherwise) {
  const temporary_folder folder;
  const auto error_of = [&](const std::string& keys) {
    write_file(folder / "config.json", R"({"num_hidden_layers":2,)" + keys + "}");
    return testing_support::refusal_of<policy_error>(
        [&] { decoder_config::load(folder / "config.json"); });
  };
  const std::string llama = R"("model_type":"llama",)";
  const std::string linear = R"({"rope_type":"linear","factor":4})";
  EXPECT_THAT(
      error_of(llama + R"("rope_parameters":{"rope_type":"default"},"rope_scaling":)" + linear),
      testing::HasSubstr("rope_scaling: differs from rope_parameters"));
  EXPECT_EQ(error_of(llama + R"("rope_parameters":)" + linear + R"(,"rope_scaling":)" + linear),
            "");
  EXPECT_EQ(error_of(llama + R"("rope_parameters":{},"rope_scaling":)" + linear), "");
  EXPECT_THAT(error_of(llama + R"("partial_rotary_factor":0.5,"rope_scaling":)" + linear),
              testing::HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(error_of(llama + R"("is_causal":false)"), testing::HasSubstr("is_causal"));
  EXPECT_EQ(error_of(llama + R"("is_causal":null)"), "");
  EXPECT_THAT(error_of(R"("model_type":"llama","num_hidden_layers":1000000000000)"),
              testing::HasSubstr("num_hidden_layers: is 1000000000000"));
  EXPECT_THAT(error_of(R"("model_type":"llama","eos_token_id":)" + std::string(200000, '[')),
              testing::HasSubstr("nested"));
  EXPECT_THAT(error_of(llama + R"("rope_theta":-1)"), testing::HasSubstr("rope_theta: has -1"));
  EXPECT_THAT(error_of(llama + R"("rope_scaling":{"rope_type":"linear","factor":0})"),
              testing::HasSubstr("factor: has 0"));
  const std::string qwen3 = R"("model_type":"qwen3",)";
  EXPECT_THAT(error_of(qwen3 + R"("head_dim":null)"), testing::HasSubstr("head_dim: is null"));
  EXPECT_THAT(error_of(qwen3 + R"("rope_parameters":{"full_attention":{"rope_type":"default"}})"),
              testing::HasSubstr("for each type of layer"));
  for (const char* kinds :
       {R"(["full_attention"])", "[]", R"(["full_attention","linear_attention"])",
        R"(["full_attention","chunked_attention"])", "7"})
    EXPECT_THAT(error_of(qwen3 + R"("layer_types":)" + kinds), testing::HasSubstr("layer_types"));
  EXPECT_THAT(error_of(qwen3 + R"("layer_types":["full_attention","sliding_attention"])"),
              testing::HasSubstr("layer_types"))
      << "and no switch";
  EXPECT_THAT(error_of(R"("model_type":"mistral","sliding_window":8,)"
                       R"("layer_types":["full_attention","full_attention"])"),
              testing::HasSubstr("sliding_window"))
      << "mistral has one window for all layers";
}

TEST(DecoderConfig, RefusesWindowsAsTheModelTypeHasThem) {
  const temporary_folder folder;
  const auto loads = [&](const std::string& type, const std::string& more) {
    write_file(folder / "config.json",
               R"({"model_type":")" + type +
                   R"(","num_hidden_layers":2,"max_position_embeddings":8192)" + more + "}");
    try {
      decoder_config::load(folder / "config.json");
      return true;
    } catch (const policy_error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("sliding_window"));
      return false;
    }
  };
  EXPECT_TRUE(loads("llama", R"(,"sliding_window":64)")) << "the type has none";
  EXPECT_FALSE(loads("mistral", "")) << "4096 if absent";
  EXPECT_TRUE(loads("mistral", R"(,"sliding_window":null)"));
  EXPECT_TRUE(loads("mistral", R"(,"sliding_window":8192)"));
  for (const char* type : {"qwen2", "qwen3"}) {
    EXPECT_TRUE(loads(type, R"(,"sliding_window":64)")) << "off if the switch is absent";
    const std::string on = R"(,"sliding_window":64,"use_sliding_window":true)";
    EXPECT_TRUE(loads(type, on)) << "layers from the 28th on have a window";
    EXPECT_FALSE(loads(type, on + R"(,"max_window_layers":1)"));
    EXPECT_FALSE(loads(type, on + R"(,"layer_types":["full_attention","sliding_attention"])"));
    EXPECT_TRUE(loads(type, on + R"(,"layer_types":["full_attention","full_attention"])"));
  }
}

TEST(DecoderConfig, HasTheDefaultsOfItsModelType) {
  const temporary_folder folder;
  const auto of = [&](const std::string& type, const std::string& more = "") {
    write_file(folder / "config.json",
               R"({"sliding_window":null,"model_type":")" + type + "\"" + more + "}");
    return decoder_config::load(folder / "config.json");
  };
  EXPECT_EQ(of("llama").kv_heads, 32);
  EXPECT_EQ(of("mistral").kv_heads, 8);
  EXPECT_EQ(of("mistral", R"(,"num_key_value_heads":null)").kv_heads, 32);
  EXPECT_EQ(of("qwen3", R"(,"hidden_size":64,"num_attention_heads":2,"num_key_value_heads":2)")
                .head_width,
            128);
  EXPECT_EQ(of("qwen2", R"(,"hidden_size":64,"num_attention_heads":2,"num_key_value_heads":2)")
                .head_width,
            32);
  EXPECT_TRUE(of("qwen2", R"(,"attention_bias":false)").attention_bias) << "its class has no key";
  EXPECT_FALSE(of("mistral", R"(,"attention_bias":true)").attention_bias);
  EXPECT_TRUE(of("llama", R"(,"attention_bias":true)").output_bias);
  EXPECT_EQ(of("llama").end_tokens, std::vector<std::int64_t>{2});
  EXPECT_TRUE(of("llama", R"(,"eos_token_id":null)").end_tokens.empty());
  EXPECT_TRUE(of("qwen2").end_tokens.empty());
}

}  // namespace
}  // namespace hone
