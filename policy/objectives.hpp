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

// Returns ln p [N] of `targets` [N] (int64) under the softmax of `logits` [N, V] / temperature.
at::Tensor token_log_probabilities(const at::Tensor& logits, const at::Tensor& targets,
                                   double temperature);

// Returns the advantages [S] of a group's rewards [S]: (r - mean) / (std + 1e-6) with the
// population standard deviation, clipped to [-limit, limit]. Equal rewards give zeros.
// Source: Shao et al. 2024 (arXiv 2402.03300), section 4.1; the clip is CUDA-L1's
// (arXiv 2507.14111, section 2.4).
at::Tensor group_advantages(const at::Tensor& rewards, double limit);

struct grpo_options {
  double clip = 0.2;               // the probability ratio is clipped to [1 - clip, 1 + clip]
  double kl_coefficient = 0;       // weight of the KL term; 0: `reference` is not read
  double entropy_coefficient = 0;  // weight of a bonus for the entropy of the token distributions
};

// Returns the negative GRPO objective (arXiv 2402.03300, equation 3) with an optional entropy
// bonus. With ratio = exp(now - then), d = reference - now and A the advantage of the sequence, a
// sequence contributes the mean over its tokens of
//   min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)
//     - kl_coefficient (exp(d) - d - 1) + entropy_coefficient entropy.
// The objective is the sum of these means, each times the weight of its sequence.
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
