#include "policy/objectives.hpp"

#include <ATen/ATen.h>

namespace hone {

at::Tensor sft_loss(const at::Tensor& logits, const at::Tensor& targets,
                    const at::Tensor& weights) {
  const at::Tensor nll = -token_log_probabilities(logits, targets, 1.0);
  return (nll * weights).sum() / weights.sum().clamp_min(1e-12);
}

at::Tensor token_log_probabilities(const at::Tensor& logits, const at::Tensor& targets,
                                   double temperature) {
  const at::Tensor scaled = temperature == 1.0 ? logits : logits / temperature;
  return at::log_softmax(scaled, -1).gather(-1, targets.unsqueeze(-1)).squeeze(-1);
}

at::Tensor group_advantages(const at::Tensor& rewards, double limit) {
  const at::Tensor centred = rewards - rewards.mean();
  return (centred / (centred.square().mean().sqrt() + 1e-6)).clamp(-limit, limit);
}

at::Tensor grpo_loss(const at::Tensor& now, const at::Tensor& then, const at::Tensor& reference,
                     const at::Tensor& entropy, const at::Tensor& sequence,
                     const at::Tensor& advantages, const at::Tensor& weights,
                     const grpo_options& options) {
  const at::Tensor ratio = (now - then).exp();
  const at::Tensor advantage = advantages.index_select(0, sequence);
  at::Tensor gain =
      at::minimum(ratio * advantage, ratio.clamp(1 - options.clip, 1 + options.clip) * advantage);
  if (options.kl_coefficient > 0) {
    const at::Tensor d = reference - now;
    gain = gain - options.kl_coefficient * (d.exp() - d - 1);
  }
  if (options.entropy_coefficient > 0) gain = gain + options.entropy_coefficient * entropy;
  const at::Tensor sums = at::zeros_like(advantages).index_add(0, sequence, gain);
  const at::Tensor counts =
      at::zeros_like(advantages).index_add(0, sequence, at::ones_like(gain.detach()));
  return -(sums / counts.clamp_min(1) * weights).sum();
}

}  // namespace hone
