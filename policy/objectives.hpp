#pragma once

namespace at {
class Tensor;
}

namespace hone {

// What a step minimises: pure functions, differentiable in the log-probabilities that come from the
// network. All tensors are fp32; N tokens, S sequences.

// Mean negative log-likelihood of `targets` [N] (int64) under `logits` [N, V], weighted by
// `weights` [N].
at::Tensor sft_loss(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights);

// ln p of `targets` [N] under the softmax of `logits` [N, V] / temperature.
at::Tensor token_log_probabilities(const at::Tensor& logits, const at::Tensor& targets,
                                   double temperature);

// GRPO's advantages for one group's rewards [S]: (r - mean) / (std + 1e-6) with the population
// standard deviation, clipped to
// +-limit. A group of equal rewards gives zeros. Shao et al. 2024 (arXiv 2402.03300), section 4.1;
// the clip is CUDA-L1's (arXiv 2507.14111, section 2.4).
at::Tensor group_advantages(const at::Tensor& rewards, double limit);

struct grpo_options {
  double clip = 0.2;               // of the probability ratio, to both sides
  double kl_coefficient = 0;       // towards the reference policy; 0: `reference` is not looked at
  double entropy_coefficient = 0;  // bonus for the entropy of the tokens' distributions
};

// Negative GRPO objective (arXiv 2402.03300, equation 3): over a sequence's tokens the mean of
// min(ratio A, clip(ratio) A) minus the KL estimate exp(d) - d - 1 with d = ln p_ref - ln p; then
// the sum over sequences by their `weights` [S] (1 / S each for the mean; a completion that was
// drawn several times is worth as often). All of [N]: `now` (differentiable), `then` (recorded at
// generation), `reference`, `entropy` (differentiable) and `sequence` (int64, 0 .. S - 1);
// `advantages` [S].
at::Tensor grpo_loss(const at::Tensor& now, const at::Tensor& then, const at::Tensor& reference,
                     const at::Tensor& entropy, const at::Tensor& sequence,
                     const at::Tensor& advantages, const at::Tensor& weights,
                     const grpo_options& options);

}  // namespace hone
