#pragma once

namespace at {
class Tensor;
}

namespace hone {

// Training objectives as pure functions, differentiable in the tensors that come from the network.
// Tensors are fp32 unless stated otherwise. N is the number of tokens, S the number of sequences
// and V the size of the vocabulary.

// Returns the mean negative log-likelihood of `targets` [N] (int64) under `logits` [N, V], weighted
// by `weights` [N].
at::Tensor sft_loss(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights);

// The distribution that tokens are sampled from: the softmax of logits / temperature, restricted to
// its nucleus and renormalised. The nucleus is the smallest set of most likely tokens whose
// probabilities sum to at least `top_p` (Holtzman et al. 2019, arXiv 1904.09751); 1 is all tokens.
struct sampling_distribution {
  double temperature = 1.0;
  double top_p = 1.0;
};

// Returns ln p [N, V] of every token under the sampling distribution of `logits` [N, V]; minus
// infinity outside of the nucleus. If `kept` [N] (int64) is given, these tokens are added to the
// nuclei: a token that an earlier policy has sampled may have left the nucleus since.
at::Tensor sampling_log_probabilities(const at::Tensor& logits, const sampling_distribution& s,
                                      const at::Tensor* kept = nullptr);

// Returns ln p [N] of `targets` [N] (int64) under the sampling distribution of `logits` [N, V],
// with the targets in the nuclei. For tokens that were just sampled from these logits, this is the
// probability with which they were sampled.
at::Tensor token_log_probabilities(const at::Tensor& logits, const at::Tensor& targets,
                                   const sampling_distribution& s);

struct grpo_options {
  double clip = 0.2;               // the probability ratio is clipped to [1 - clip, 1 + clip]
  double dual_clip = 3;            // least gain of a token, in units of a negative advantage
  double kl_coefficient = 0;       // weight of the KL term; 0: `reference` is not read
  double entropy_coefficient = 0;  // weight of a bonus for the entropy of the token distributions
};

// Log ratios of probabilities are clipped to plus and minus this, so that no ratio overflows.
inline constexpr double max_log_ratio = 10;

// Returns the negative GRPO objective (arXiv 2402.03300, equation 3) with dual clipping (Ye et al.
// 2020, arXiv 1912.09729, equation 5) and an optional entropy bonus. With ratio = exp(now - then),
// d = reference - now, both log ratios clipped, and A the advantage of the sequence, a sequence
// contributes the mean over its tokens of
//   gain - kl_coefficient (exp(d) - d - 1) + entropy_coefficient entropy, where
//   gain = min(ratio A, clip(ratio, 1 - clip, 1 + clip) A), and at least dual_clip A if A < 0.
// Without the lower bound, a token of a bad completion that has become much more likely since would
// dominate the update. The objective is the sum of these means, each times the weight of its
// sequence.
//
// Per token, [N]: `now` holds ln p under the current policy (differentiable), `then` ln p recorded
// at generation, `reference` ln p under the reference policy, `entropy` the entropy of the token's
// distribution (differentiable) and `sequence` the index of its sequence (int64, 0 .. S - 1). Per
// sequence, [S]: `advantages` and `weights`. Weights of 1 / S give the mean over sequences; a
// completion that was drawn k times may be passed once with k times the weight.
at::Tensor grpo_loss(const at::Tensor& now, const at::Tensor& then, const at::Tensor& reference,
                     const at::Tensor& entropy, const at::Tensor& sequence,
                     const at::Tensor& advantages, const at::Tensor& weights,
                     const grpo_options& options);

}  // namespace hone
