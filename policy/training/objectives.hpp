#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace at {
class Tensor;
}

namespace hone {

// Training objectives as pure functions, differentiable in the tensors that come from the network.
// Tensors are fp32 unless stated otherwise. N is the number of tokens, S the number of sequences.

// Returns the negative log-likelihood of tokens with these ln p [N], weighted by `weights` [N] and
// divided by `whole`: with the sum of all weights, their part of the weighted mean.
at::Tensor sft_loss(const at::Tensor& log_probabilities, const at::Tensor& weights, double whole);

struct grpo_options {
  // The probability ratio is clipped to [1 - clip, 1 + clip_high]. A higher upper bound lets
  // unlikely tokens of good completions become likely ("clip higher": DAPO, arXiv 2503.14476,
  // section 3.1).
  double clip = 0.2;
  double clip_high = 0;            // 0: the same as `clip`
  double dual_clip = 3;            // least gain of a token, in units of a negative advantage
  double kl_coefficient = 0;       // weight of the KL term; 0: `reference` is not read
  double entropy_coefficient = 0;  // weight of a bonus for the entropy of the token distributions
};

// Returns the bound above which probability ratios are clipped.
double highest_ratio(const grpo_options& options);

// Log ratios of probabilities are clipped to plus and minus this, so that no ratio overflows.
inline constexpr double max_log_ratio = 10;

// Inputs of an objective per token, [N]. The tensors must outlive it.
struct grpo_tokens {
  const at::Tensor& now;         // ln p under the current policy (differentiable)
  const at::Tensor& then;        // ln p under the policy that the ratio is relative to
  const at::Tensor& importance;  // weight of the gain; ones: none
  const at::Tensor& reference;   // ln p under the reference policy
  const at::Tensor& entropy;     // of the token's distribution (differentiable)
  const at::Tensor& sequence;    // index of its sequence (int64, 0 .. S - 1)
};

// Returns the negative GRPO objective (arXiv 2402.03300, equation 3) with dual clipping (Ye et al.
// 2020, arXiv 1912.09729, equation 5) and an optional entropy bonus. With ratio = exp(now - then),
// d = reference - now, both log ratios clipped, and A the advantage of the sequence, a sequence
// contributes the mean over its tokens of
//   importance gain - kl_coefficient (exp(d) - d - 1) + entropy_coefficient entropy, where
//   gain = min(ratio A, clip(ratio, 1 - clip, 1 + clip_high) A), and at least dual_clip A if A < 0.
// Without the lower bound, a token of a bad completion that has become much more likely since would
// dominate the update. The objective is the sum of the sequences' means, each times the weight of
// its sequence.
//
// Per sequence, [S]: `advantages` and `weights`. Weights of 1 / S give the mean over sequences; a
// completion that was drawn k times may be passed once with k times the weight; other weights
// (sequence_weights) give other means.
at::Tensor grpo_loss(const grpo_tokens& tokens, const at::Tensor& advantages,
                     const at::Tensor& weights, const grpo_options& options);

// Returns the importance [N] of tokens that one policy has sampled and whose ratios are relative to
// another, the proximal one: min(exp(proximal - then), limit), with the log ratio clipped. Without
// a limit this is the decoupled objective (Hilton et al. 2021, arXiv 2110.00641, equation 5; AReaL,
// arXiv 2505.24298, equation 5): the proximal policy bounds the update, and the weight corrects for
// who has sampled. With a limit of some units it is truncated importance sampling (Ionides 2008;
// for samplers and trainers of different arithmetic: Yao et al. 2025, "Your efficient RL framework
// secretly brings you off-policy RL training").
at::Tensor importance_weights(const at::Tensor& proximal, const at::Tensor& then, double limit);

// Over what the objective takes its mean.
enum class loss_mean {
  sequence,  // each completion counts the same, whatever its length (GRPO)
  token,     // each token counts the same (DAPO, arXiv 2503.14476, equation 12)
  limit,     // a completion's sum is divided by the length limit (Dr. GRPO, arXiv 2503.20783)
};
// Returns the name in the configuration.
std::string_view name_of(loss_mean mean);
// Returns nullopt for an unknown name.
std::optional<loss_mean> loss_mean_named(std::string_view name);

// Returns the weights with which grpo_loss() takes this mean. Per sequence: `shares` is how often
// it was drawn, and they sum to 1; `lengths` is its tokens. `limit` is the most tokens of a
// completion.
std::vector<double> sequence_weights(loss_mean mean, std::span<const double> shares,
                                     std::span<const std::size_t> lengths, std::size_t limit);

}  // namespace hone
