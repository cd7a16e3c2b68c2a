#include "policy/training/objectives.hpp"
#include "policy/network/sampling_distribution.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hone {
namespace {

at::Tensor f(const std::vector<double>& x) { return at::tensor(x, at::kDouble).to(at::kFloat); }
at::Tensor l(const std::vector<std::int64_t>& x) { return at::tensor(x, at::kLong); }

// Returns ln of the softmax at `target`, computed independently of the code under test.
double log_p(const std::vector<double>& logits, std::size_t target, double temperature = 1) {
  double sum = 0;
  for (const double x : logits) sum += std::exp(x / temperature);
  return logits[target] / temperature - std::log(sum);
}

// The objective without importance weights.
at::Tensor grpo(const at::Tensor& now, const at::Tensor& then, const at::Tensor& reference,
                const at::Tensor& entropy, const at::Tensor& sequence, const at::Tensor& advantages,
                const at::Tensor& weights, const grpo_options& options) {
  return grpo_loss({now, then, at::ones_like(then), reference, entropy, sequence}, advantages,
                   weights, options);
}

TEST(SftLoss, IsTheWeightedMeanNegativeLogLikelihood) {
  const std::vector<double> first = {1.0, 2.0, 0.5};
  const std::vector<double> second = {-1.0, 0.0, 3.0};
  const at::Tensor logits = at::stack({f(first), f(second)});
  const double expected = -(1.0 * log_p(first, 1) + 0.25 * log_p(second, 0)) / 1.25;
  EXPECT_NEAR(
      sft_loss(token_log_probabilities(logits, l({1, 0}), {}), f({1.0, 0.25}), 1.25).item<double>(),
      expected, 1e-6);
}

TEST(SftLoss, GradientIsSoftmaxMinusOneHot) {
  at::Tensor logits = f({0.3, -0.2, 1.0}).unsqueeze(0);
  logits.set_requires_grad(true);
  sft_loss(token_log_probabilities(logits, l({2}), {}), f({1.0}), 1.0).backward();
  for (std::int64_t i = 0; i < 3; ++i) {
    const double p = std::exp(log_p({0.3, -0.2, 1.0}, static_cast<std::size_t>(i)));
    EXPECT_NEAR(logits.grad()[0][i].item<double>(), p - (i == 2 ? 1 : 0), 1e-6);
  }
}

TEST(GrpoLoss, MatchesTheFormulaComputedByHand) {
  // The first sequence has two tokens and advantage 1, the second one token and advantage -0.5.
  const std::vector<double> then = {-1.0, -2.0, -0.5};
  const std::vector<double> now = {-0.9, -1.5, -0.8};
  grpo_options options;
  options.clip = 0.2;
  const auto clipped = [](double r) { return std::min(1.2, std::max(0.8, r)); };
  const double r0 = std::exp(0.1);
  const double r1 = std::exp(0.5);
  const double r2 = std::exp(-0.3);
  const double first = (std::min(r0, clipped(r0)) + std::min(r1, clipped(r1))) / 2;
  const double second = std::min(-0.5 * r2, -0.5 * clipped(r2));
  const at::Tensor loss = grpo(f(now), f(then), f(now), f({0, 0, 0}), l({0, 0, 1}), f({1.0, -0.5}),
                               f({0.5, 0.5}), options);
  EXPECT_NEAR(loss.item<double>(), -(first + second) / 2, 1e-6);
}

TEST(GrpoLoss, AddsTheKlEstimateTowardsTheReference) {
  grpo_options options;
  options.kl_coefficient = 0.1;
  const double d = -1.3 - -1.0;  // ln p_ref - ln p
  const at::Tensor loss =
      grpo(f({-1.0}), f({-1.0}), f({-1.3}), f({0}), l({0}), f({0.0}), f({1.0}), options);
  EXPECT_NEAR(loss.item<double>(), 0.1 * (std::exp(d) - d - 1), 1e-6);
}

TEST(GrpoLoss, AClippedRatioGivesNoGradient) {
  at::Tensor now = f({-0.5, -1.0});
  now.set_requires_grad(true);
  // The ratios are e^0.5, which is above 1.2 and has a positive advantage, and 1.
  grpo(now, f({-1.0, -1.0}), now.detach(), f({0, 0}), l({0, 1}), f({1.0, 1.0}), f({0.5, 0.5}), {})
      .backward();
  EXPECT_EQ(now.grad()[0].item<double>(), 0);
  EXPECT_NEAR(now.grad()[1].item<double>(), -0.5, 1e-6);
}

TEST(GrpoLoss, ATokenOfABadCompletionCountsAtMostDualClipTimes) {
  // The ratio is e^4 = 54.6 and the advantage -1: without the lower bound, the loss would be 54.6.
  at::Tensor now = f({-1.0, -1.0});
  now.set_requires_grad(true);
  grpo_options options;
  options.dual_clip = 3;
  const at::Tensor loss = grpo(now, f({-5.0, -1.0}), now.detach(), f({0, 0}), l({0, 1}),
                               f({-1.0, -1.0}), f({0.5, 0.5}), options);
  EXPECT_NEAR(loss.item<double>(), 0.5 * (3 + 1), 1e-6);
  loss.backward();
  EXPECT_EQ(now.grad()[0].item<double>(), 0);
  EXPECT_NEAR(now.grad()[1].item<double>(), 0.5, 1e-6);
}

TEST(GrpoLoss, StaysFiniteWhateverTheRatio) {
  for (const double then : {-200.0, -0.001}) {
    for (const double advantage : {-1.5, 1.5}) {
      at::Tensor now = f({then < -1 ? -0.001 : -200.0});
      now.set_requires_grad(true);
      grpo_options options;
      options.kl_coefficient = 0.1;
      const at::Tensor loss =
          grpo(now, f({then}), f({then}), f({0}), l({0}), f({advantage}), f({1.0}), options);
      loss.backward();
      EXPECT_TRUE(std::isfinite(loss.item<double>()));
      EXPECT_TRUE(std::isfinite(now.grad()[0].item<double>()));
    }
  }
}

TEST(GrpoLoss, ACompletionPassedOnceWithTwiceTheWeightEqualsTwoCompletions) {
  const at::Tensor twice =
      grpo(f({-0.9, -1.5, -0.9}), f({-1.0, -2.0, -1.0}), f({0, 0, 0}), f({0, 0, 0}), l({0, 1, 2}),
           f({1.0, -0.5, 1.0}), f({1 / 3.0, 1 / 3.0, 1 / 3.0}), {});
  const at::Tensor once = grpo(f({-0.9, -1.5}), f({-1.0, -2.0}), f({0, 0}), f({0, 0}), l({0, 1}),
                               f({1.0, -0.5}), f({2 / 3.0, 1 / 3.0}), {});
  EXPECT_NEAR(twice.item<double>(), once.item<double>(), 1e-6);
}

TEST(GrpoLoss, SubtractsTheEntropyBonus) {
  grpo_options options;
  options.entropy_coefficient = 0.01;
  const at::Tensor loss =
      grpo(f({-1.0}), f({-1.0}), f({-1.0}), f({2.0}), l({0}), f({0.0}), f({1.0}), options);
  EXPECT_NEAR(loss.item<double>(), -0.02, 1e-7);
}

TEST(GrpoLoss, AHigherUpperBoundLetsGoodTokensRise) {
  // The ratio is e^0.25 = 1.284, above 1.2 and below 1.3.
  for (const auto& [bound, gradient] : {std::pair(0.2, 0.0), std::pair(0.3, -std::exp(0.25))}) {
    at::Tensor now = f({-0.75});
    now.set_requires_grad(true);
    grpo_options options;
    options.clip_high = bound;
    grpo(now, f({-1.0}), now.detach(), f({0}), l({0}), f({1.0}), f({1.0}), options).backward();
    EXPECT_NEAR(now.grad()[0].item<double>(), gradient, 1e-6);
  }
}

TEST(GrpoLoss, MultipliesTheGainByTheImportanceAndNotTheKlTerm) {
  grpo_options options;
  options.kl_coefficient = 0.1;
  const at::Tensor now = f({-1.0});
  const at::Tensor importance = f({0.25});
  const at::Tensor reference = f({-1.3});
  const at::Tensor zero = f({0});
  const at::Tensor first = l({0});
  const double d = -0.3;
  EXPECT_NEAR(grpo_loss({now, now, importance, reference, zero, first}, f({2.0}), f({1.0}), options)
                  .item<double>(),
              -(0.25 * 2.0 - 0.1 * (std::exp(d) - d - 1)), 1e-6);
}

TEST(ImportanceWeights, AreRatiosUpToALimit) {
  const at::Tensor weights =
      importance_weights(f({-1.0, -1.0, -1.0, -300.0}), f({-1.0, -2.0, -0.5, -0.1}), 2);
  EXPECT_NEAR(weights[0].item<double>(), 1, 1e-6);
  EXPECT_NEAR(weights[1].item<double>(), 2, 1e-6) << "e is above the limit";
  EXPECT_NEAR(weights[2].item<double>(), std::exp(-0.5), 1e-6);
  EXPECT_NEAR(weights[3].item<double>(), std::exp(-max_log_ratio), 1e-9);
}

// Two completions of one and three tokens, the first drawn three times as often.
TEST(SequenceWeights, GiveTheMeanThatIsAskedFor) {
  const std::vector<double> shares = {0.75, 0.25};
  const std::vector<std::size_t> lengths = {1, 3};
  const auto loss = [&](loss_mean mean) {
    const auto weights = sequence_weights(mean, shares, lengths, 10);
    // Gains per token: 1, and 2, 3, 4.
    return weights[0] * 1 + weights[1] * (2 + 3 + 4) / 3.0;
  };
  EXPECT_NEAR(loss(loss_mean::sequence), 0.75 * 1 + 0.25 * 3, 1e-12);
  EXPECT_NEAR(loss(loss_mean::token), (3 * 1 + (2 + 3 + 4)) / 6.0, 1e-12)
      << "six tokens were drawn";
  EXPECT_NEAR(loss(loss_mean::limit), (0.75 * 1 + 0.25 * (2 + 3 + 4)) / 10, 1e-12);
}

}  // namespace
}  // namespace hone
