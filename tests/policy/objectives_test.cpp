#include "policy/objectives.hpp"

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

TEST(SftLoss, IsTheWeightedMeanNegativeLogLikelihood) {
  const std::vector<double> first = {1.0, 2.0, 0.5};
  const std::vector<double> second = {-1.0, 0.0, 3.0};
  const at::Tensor logits = at::stack({f(first), f(second)});
  const double expected = -(1.0 * log_p(first, 1) + 0.25 * log_p(second, 0)) / 1.25;
  EXPECT_NEAR(sft_loss(logits, l({1, 0}), f({1.0, 0.25})).item<double>(), expected, 1e-6);
}

TEST(SftLoss, GradientIsSoftmaxMinusOneHot) {
  at::Tensor logits = f({0.3, -0.2, 1.0}).unsqueeze(0);
  logits.set_requires_grad(true);
  sft_loss(logits, l({2}), f({1.0})).backward();
  for (std::int64_t i = 0; i < 3; ++i) {
    const double p = std::exp(log_p({0.3, -0.2, 1.0}, static_cast<std::size_t>(i)));
    EXPECT_NEAR(logits.grad()[0][i].item<double>(), p - (i == 2 ? 1 : 0), 1e-6);
  }
}

TEST(TokenLogProbabilities, ApplyTheTemperature) {
  const std::vector<double> logits = {1.0, 2.0, 0.5};
  EXPECT_NEAR(token_log_probabilities(f(logits).unsqueeze(0), l({1}), 0.5)[0].item<double>(),
              log_p(logits, 1, 0.5), 1e-6);
}

TEST(GroupAdvantages, AreStandardisedWithThePopulationDeviation) {
  // Rewards 0, 1, 2, 5: mean 2, population variance (4 + 1 + 0 + 9) / 4 = 3.5.
  const at::Tensor a = group_advantages(f({0, 1, 2, 5}), 10);
  const double deviation = std::sqrt(3.5) + 1e-6;
  const std::vector<double> expected = {-2 / deviation, -1 / deviation, 0, 3 / deviation};
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(a[i].item<double>(), expected[static_cast<std::size_t>(i)], 1e-6);
}

TEST(GroupAdvantages, AreClippedAndAreZeroForEqualRewards) {
  const at::Tensor a = group_advantages(f({0, 0, 0, 0, 0, 0, 0, 16}), 1.5);
  EXPECT_NEAR(a[7].item<double>(), 1.5, 1e-6);
  EXPECT_NEAR(a[0].item<double>(), -1 / std::sqrt(7.0), 1e-5);
  EXPECT_EQ(group_advantages(f({3, 3, 3}), 1.5).abs().max().item<double>(), 0);
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
  const at::Tensor loss = grpo_loss(f(now), f(then), f(now), f({0, 0, 0}), l({0, 0, 1}),
                                    f({1.0, -0.5}), f({0.5, 0.5}), options);
  EXPECT_NEAR(loss.item<double>(), -(first + second) / 2, 1e-6);
}

TEST(GrpoLoss, AddsTheKlEstimateTowardsTheReference) {
  grpo_options options;
  options.kl_coefficient = 0.1;
  const double d = -1.3 - -1.0;  // ln p_ref - ln p
  const at::Tensor loss =
      grpo_loss(f({-1.0}), f({-1.0}), f({-1.3}), f({0}), l({0}), f({0.0}), f({1.0}), options);
  EXPECT_NEAR(loss.item<double>(), 0.1 * (std::exp(d) - d - 1), 1e-6);
}

TEST(GrpoLoss, AClippedRatioGivesNoGradient) {
  at::Tensor now = f({-0.5, -1.0});
  now.set_requires_grad(true);
  // The ratios are e^0.5, which is above 1.2 and has a positive advantage, and 1.
  grpo_loss(now, f({-1.0, -1.0}), now.detach(), f({0, 0}), l({0, 1}), f({1.0, 1.0}), f({0.5, 0.5}),
            {})
      .backward();
  EXPECT_EQ(now.grad()[0].item<double>(), 0);
  EXPECT_NEAR(now.grad()[1].item<double>(), -0.5, 1e-6);
}

TEST(GrpoLoss, ACompletionPassedOnceWithTwiceTheWeightEqualsTwoCompletions) {
  const at::Tensor twice =
      grpo_loss(f({-0.9, -1.5, -0.9}), f({-1.0, -2.0, -1.0}), f({0, 0, 0}), f({0, 0, 0}),
                l({0, 1, 2}), f({1.0, -0.5, 1.0}), f({1 / 3.0, 1 / 3.0, 1 / 3.0}), {});
  const at::Tensor once = grpo_loss(f({-0.9, -1.5}), f({-1.0, -2.0}), f({0, 0}), f({0, 0}),
                                    l({0, 1}), f({1.0, -0.5}), f({2 / 3.0, 1 / 3.0}), {});
  EXPECT_NEAR(twice.item<double>(), once.item<double>(), 1e-6);
}

TEST(GrpoLoss, SubtractsTheEntropyBonus) {
  grpo_options options;
  options.entropy_coefficient = 0.01;
  const at::Tensor loss =
      grpo_loss(f({-1.0}), f({-1.0}), f({-1.0}), f({2.0}), l({0}), f({0.0}), f({1.0}), options);
  EXPECT_NEAR(loss.item<double>(), -0.02, 1e-7);
}

}  // namespace
}  // namespace hone
