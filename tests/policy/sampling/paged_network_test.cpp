#include "policy/sampling/paged_network.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include "cuda/cuda_driver.hpp"
#include "policy/files.hpp"
#include "policy/network/transformer.hpp"
#include "policy/policy_device.hpp"
#include "policy/sampling/generation.hpp"
#include "policy/text/text_codec.hpp"

namespace hone {
namespace {

struct model_shape {
  const char* name;
  decoder_config config;
};

decoder_config llama_shape(const std::string& dtype) {
  decoder_config c;
  c.vocabulary = 512;
  c.width = 576;
  c.layers = 3;
  c.heads = 9;
  c.kv_heads = 3;
  c.head_width = 64;
  c.feed_forward = 768;
  c.context = 6000;
  c.tied_head = true;
  c.dtype = dtype;
  c.initializer_range = 0.08;
  return c;
}

decoder_config qwen_shape() {
  decoder_config c = llama_shape("bfloat16");
  c.heads = 7;
  c.kv_heads = 1;
  c.head_width = 128;
  c.tied_head = false;
  c.attention_bias = true;
  c.output_bias = true;
  c.mlp_bias = true;
  c.head_norm = true;
  return c;
}

// Returns ln p of the completion's tokens as training computes it.
at::Tensor trained_log_probabilities(const decoder_config& config, const decoder_weights& weights,
                                     const std::vector<token_id>& before, const completion& c) {
  std::vector<std::int64_t> tokens(before.begin(), before.end());
  tokens.insert(tokens.end(), c.tokens.begin(), c.tokens.end());
  const auto first = static_cast<std::int64_t>(before.size());
  const auto length = static_cast<std::int64_t>(tokens.size());
  const at::Tensor all = at::tensor(tokens, at::kLong).to(at::kCUDA);
  const decoder network(config);
  const at::Tensor rows = network.hidden_at(weights, all, std::vector<std::int64_t>{length},
                                            at::arange(first - 1, length - 1, all.options()));
  return token_log_probabilities(network.head(weights, rows), all.narrow(0, first, length - first),
                                 {})
      .to(at::kCPU);
}

class PagedNetwork : public testing::TestWithParam<model_shape> {
 protected:
  void SetUp() override {
    if (const auto* why = std::get_if<std::string>(&cuda_driver::load())) GTEST_SKIP() << *why;
    prepare_policy_device("cuda");
    config_ = GetParam().config;
    exact_ = decoder_weights::random(config_, 3, "cpu").to("cuda", "float32");
    for (auto& [name, tensor] : exact_.all()) {
      if (tensor.dim() == 1) tensor.add_(at::randn_like(tensor), 0.1);
      tensor = tensor.to(config_.dtype == "bfloat16" ? at::kBFloat16 : at::kHalf).to(at::kFloat);
    }
    weights_ = exact_.to("cuda", config_.dtype);
    ASSERT_TRUE(can_use_pages(config_, weights_));
  }

  std::vector<token_id> prompt(std::size_t length) {
    std::vector<token_id> tokens(length);
    for (token_id& t : tokens) t = static_cast<token_id>(random_() % 512);
    return tokens;
  }
  at::Tensor log_probabilities(const decoder_weights& weights, const std::vector<token_id>& before,
                               const completion& c) const {
    return trained_log_probabilities(config_, weights, before, c);
  }
  static at::Tensor recorded(const completion& c) { return at::tensor(c.log_probabilities); }
  static std::map<std::uint64_t, std::vector<completion>> finish(generation_engine& engine) {
    std::map<std::uint64_t, std::vector<completion>> finished;
    while (!engine.idle()) {
      for (auto& f : engine.step()) finished[f.ticket] = std::move(f.completions);
    }
    return finished;
  }

  decoder_config config_;
  decoder_weights exact_;  // float32, with values that the other weights can hold
  decoder_weights weights_;
  std::mt19937 random_{5};
};

TEST_P(PagedNetwork, ComputesWhatTrainingComputes) {
  generation_options options;
  options.slots = 37;
  options.max_new_tokens = 75;
  options.end_tokens = {9, 10, 11};
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  std::map<std::uint64_t, std::vector<token_id>> prompts;
  std::uint64_t ticket = 0;
  for (const std::size_t length : {1U, 31U, 32U, 33U, 200U, 5000U, 700U, 64U, 4096U, 4097U, 5U}) {
    prompts[ticket] = prompt(length);
    engine.submit({ticket, prompts[ticket], static_cast<std::uint32_t>(1 + ticket * 5 % 19)});
    ++ticket;
  }
  const auto finished = finish(engine);
  ASSERT_EQ(finished.size(), prompts.size());
  double own = 0;
  double of_training = 0;
  double between = 0;
  std::int64_t tokens = 0;
  for (const auto& [number, completions] : finished) {
    for (const completion& c : completions) {
      const at::Tensor exact = log_probabilities(exact_, prompts[number], c);
      const at::Tensor trained = log_probabilities(weights_, prompts[number], c);
      const at::Tensor error = (recorded(c) - exact).abs();
      own += error.sum().item<double>();
      of_training += (trained - exact).abs().sum().item<double>();
      between += (recorded(c) - trained).abs().sum().item<double>();
      tokens += exact.numel();
      EXPECT_LT(error.max().item<double>(), 1.0) << "prompt " << number;
    }
  }
  const auto n = static_cast<double>(tokens);
  RecordProperty("mean_error", std::to_string(own / n));
  std::cout << "mean absolute errors of ln p over " << tokens << " tokens: sampler " << own / n
            << ", trainer " << of_training / n << ", between them " << between / n << "\n";
  EXPECT_LT(own, 1.2 * of_training + 1e-3 * n);
}

TEST_P(PagedNetwork, DrawsFromTheSoftmax) {
  generation_options options;
  options.slots = 256;
  options.max_new_tokens = 1;
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  const auto before = prompt(20);
  constexpr std::uint32_t samples = 20000;
  engine.submit({1, before, samples});
  const auto finished = finish(engine);
  std::map<token_id, double> count;
  std::map<token_id, double> expected;
  for (const completion& c : finished.at(1)) {
    ++count[c.tokens.front()];
    expected[c.tokens.front()] = std::exp(c.log_probabilities.front()) * samples;
  }
  double deviation = 0;  // sum of squares of standard normal numbers, about
  int kinds = 0;
  for (const auto& [token, its] : expected) {
    if (its < 10) continue;
    ++kinds;
    deviation += (count[token] - its) * (count[token] - its) / its;
  }
  EXPECT_GT(kinds, 5);
  EXPECT_LT(deviation, kinds + 6 * std::sqrt(2.0 * kinds));
}

TEST_P(PagedNetwork, RepeatsItselfWithTheSameSeedAndTakesTheMostLikelyTokenIfAsked) {
  const auto before = prompt(100);
  const auto run = [&](std::uint64_t seed, bool is_greedy) {
    generation_options options;
    options.slots = 9;
    options.max_new_tokens = 40;
    options.seed = seed;
    generation_engine engine(config_, options);
    engine.set_weights(weights_, 1);
    engine.submit({1, before, 12, answer_room::any, is_greedy});
    return finish(engine).at(1);
  };
  const auto first = run(1, false);
  const auto again = run(1, false);
  const auto other = run(2, false);
  const auto max_likely = run(1, true);
  int different = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].tokens, again[i].tokens);
    EXPECT_EQ(max_likely[i].tokens, max_likely[0].tokens);
    different += first[i].tokens != other[i].tokens ? 1 : 0;
  }
  EXPECT_GT(different, 8);
  // No other first token is more likely than the greedy one.
  for (const completion& c : first)
    EXPECT_LE(c.log_probabilities[0], max_likely[0].log_probabilities[0] + 1e-3);
}

TEST_P(PagedNetwork, SamplesWaitForMemoryAndWhatCannotFitIsRefused) {
  generation_options options;
  options.slots = 64;
  options.max_new_tokens = 200;
  CUdevice device = 0;
  std::size_t bytes = 0;
  ASSERT_EQ(cuda_driver::get().cuDeviceGet(&device, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda_driver::get().cuDeviceTotalMem(&bytes, device), CUDA_SUCCESS);
  const auto of_token =
      static_cast<double>(4 * config_.layers * config_.kv_heads * config_.head_width);
  options.memory_share = 2000 * of_token / static_cast<double>(bytes);  // 2,000 tokens
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  for (std::uint64_t t = 0; t < 6; ++t) engine.submit({t, prompt(300), 5});
  std::size_t most = 0;
  std::size_t finished = 0;
  while (!engine.idle()) {
    finished += engine.step().size();
    most = std::max(most, engine.active());
  }
  EXPECT_EQ(finished, 6U);
  EXPECT_LT(most, 10U);
  engine.submit({9, prompt(2000), 1});
  EXPECT_THROW(engine.step(), policy_error);
}

TEST_P(PagedNetwork, ObeysTheOtherRulesOfSamplingAndTakesNewWeights) {
  generation_options options;
  options.slots = 8;
  options.max_new_tokens = 30;
  options.sampling.top_k = 1;
  generation_engine engine(config_, options);
  engine.set_weights(weights_, 1);
  const auto before = prompt(40);
  engine.submit({1, before, 4});
  for (int i = 0; i < 10; ++i) engine.step();
  const decoder_weights other =
      decoder_weights::random(config_, 4, "cpu").to("cuda", config_.dtype);
  engine.set_weights(other, 2);
  const auto finished = finish(engine);
  for (const completion& c : finished.at(1)) {
    // top_k = 1 leaves no choice, except among the few tokens whose logits are equal when rounded.
    for (const float ln_p : c.log_probabilities) EXPECT_GT(ln_p, std::log(1.0 / 5));
    ASSERT_EQ(c.versions.size(), 2U);
    EXPECT_EQ(c.versions[0].second + c.versions[1].second, 30U);
  }
  generation_engine with_old(config_, options);
  with_old.set_weights(weights_, 1);
  with_old.submit({1, before, 1});
  EXPECT_NE(finish(with_old).at(1)[0].tokens, finished.at(1)[0].tokens);
}

// With a real model, whose logits are as peaked as those of text.
TEST(PagedSmolLm2, DiffersLittleFromTraining) {
  if (const auto* why = std::get_if<std::string>(&cuda_driver::load())) GTEST_SKIP() << *why;
  const char* const folder = std::getenv("HONE_SMOLLM2");
  if (folder == nullptr) GTEST_SKIP() << "HONE_SMOLLM2 does not name the model's folder";
  prepare_policy_device("cuda");
  const auto config = decoder_config::load(std::filesystem::path(folder) / "config.json");
  const auto weights = decoder_weights::load(folder, config).to("cuda", config.dtype);
  const text_codec codec = text_codec::load(folder, {});
  generation_options options;
  options.slots = 64;
  options.max_new_tokens = 400;
  options.end_tokens = codec.end_tokens();
  generation_engine engine(config, options);
  engine.set_weights(weights, 1);
  const std::vector<std::vector<token_id>> prompts = {
      codec.encode_prompt("A CUDA kernel that adds two vectors of floats:\n```cuda\n"),
      codec.encode_prompt("The history of the steam engine begins"),
      codec.encode_prompt("def fibonacci(n):\n")};
  for (std::size_t i = 0; i < prompts.size(); ++i) engine.submit({i, prompts[i], 20});
  double difference = 0;
  std::int64_t tokens = 0;
  while (!engine.idle()) {
    for (const finished_request& done : engine.step()) {
      for (const completion& c : done.completions) {
        difference += (at::tensor(c.log_probabilities) -
                       trained_log_probabilities(config, weights, prompts[done.ticket], c))
                          .abs()
                          .sum()
                          .item<double>();
        tokens += static_cast<std::int64_t>(c.tokens.size());
      }
    }
  }
  const double mean = difference / static_cast<double>(tokens);
  std::cout << "mean absolute difference of ln p over " << tokens << " tokens: " << mean << "\n";
  // In bfloat16 decoding and one pass of `transformers` differ by 0.042 for this model.
  EXPECT_LE(mean, 0.06);
}

INSTANTIATE_TEST_SUITE_P(Shapes, PagedNetwork,
                         testing::Values(model_shape{"Llama", llama_shape("bfloat16")},
                                         model_shape{"LlamaFloat16", llama_shape("float16")},
                                         model_shape{"Qwen", qwen_shape()}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace hone
