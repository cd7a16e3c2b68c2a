#include "policy/network/sampling_distribution.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hone {
namespace {

at::Tensor f(const std::vector<double>& x) { return at::tensor(x, at::kDouble).to(at::kFloat); }
at::Tensor l(const std::vector<std::int64_t>& x) { return at::tensor(x, at::kLong); }

TEST(TokenLogProbabilities, ApplyTheTemperature) {
  const std::vector<double> logits = {1.0, 2.0, 0.5};
  const double sum = std::exp(1.0 / 0.5) + std::exp(2.0 / 0.5) + std::exp(0.5 / 0.5);
  EXPECT_NEAR(token_log_probabilities(f(logits).unsqueeze(0), l({1}), {0.5, 1})[0].item<double>(),
              2.0 / 0.5 - std::log(sum), 1e-6);
}

// Logits of the probabilities 0.5, 0.3, 0.15 and 0.05.
at::Tensor four_tokens() { return f({0.5, 0.3, 0.15, 0.05}).log().unsqueeze(0); }

TEST(SamplingDistribution, IsTheRenormalisedNucleus) {
  const at::Tensor p = sampling_log_probabilities(four_tokens(), {1, 0.75}).exp()[0];
  EXPECT_NEAR(p[0].item<double>(), 0.5 / 0.8, 1e-6);
  EXPECT_NEAR(p[1].item<double>(), 0.3 / 0.8, 1e-6);
  EXPECT_EQ(p[2].item<double>(), 0);
  EXPECT_EQ(p[3].item<double>(), 0);
}

TEST(SamplingDistribution, AlwaysHasTheMostLikelyToken) {
  const at::Tensor p = sampling_log_probabilities(four_tokens(), {1, 0.01}).exp()[0];
  EXPECT_NEAR(p[0].item<double>(), 1, 1e-6);
}

TEST(SamplingDistribution, KeepsATokenThatHasLeftTheNucleus) {
  const double kept = token_log_probabilities(four_tokens(), l({3}), {1, 0.75})[0].item<double>();
  EXPECT_NEAR(kept, std::log(0.05 / 0.85), 1e-6) << "the nucleus and the token itself";
  EXPECT_NEAR(token_log_probabilities(four_tokens(), l({1}), {1, 0.75})[0].item<double>(),
              std::log(0.3 / 0.8), 1e-6);
}

TEST(SamplingDistribution, MayBeOfTheMostLikelyTokensOrThoseNearTheMostLikely) {
  for (const sampling_distribution& s :
       {sampling_distribution{.top_k = 2}, sampling_distribution{.min_p = 0.4}}) {
    const at::Tensor p = sampling_log_probabilities(four_tokens(), s).exp()[0];
    EXPECT_NEAR(p[0].item<double>(), 0.5 / 0.8, 1e-6);
    EXPECT_NEAR(p[1].item<double>(), 0.3 / 0.8, 1e-6);
    EXPECT_EQ(p[2].item<double>(), 0);
    EXPECT_EQ(p[3].item<double>(), 0);
  }
}

TEST(SamplingDistribution, AdmitsWhatAllRulesAdmit) {
  // top_p admits three tokens, top_k the first two, min_p the first.
  const at::Tensor p =
      sampling_log_probabilities(four_tokens(), {.top_p = 0.9, .top_k = 2, .min_p = 0.9}).exp()[0];
  EXPECT_NEAR(p[0].item<double>(), 1, 1e-6);
  const at::Tensor all =
      sampling_log_probabilities(four_tokens(), {.top_p = 1, .top_k = 400, .min_p = 0}).exp()[0];
  EXPECT_NEAR(all[3].item<double>(), 0.05, 1e-6) << "more tokens than there are";
}

TEST(SamplingDistribution, GivesFiniteGradients) {
  at::Tensor logits = four_tokens();
  logits.set_requires_grad(true);
  token_log_probabilities(logits, l({3}), {1, 0.75}).sum().backward();
  EXPECT_TRUE(at::isfinite(logits.grad()).all().item<bool>());
  EXPECT_NEAR(logits.grad()[0][2].item<double>(), 0, 1e-7) << "outside of the nucleus";
  EXPECT_GT(logits.grad()[0][3].item<double>(), 0);
}

}  // namespace
}  // namespace hone
