#include "policy/objectives.hpp"

#include <ATen/ATen.h>

#include <limits>

namespace hone {

at::Tensor sft_loss(const at::Tensor& logits, const at::Tensor& targets,
                    const at::Tensor& weights) {
  const at::Tensor nll = -token_log_probabilities(logits, targets, {});
  return (nll * weights).sum() / weights.sum().clamp_min(1e-12);
}

at::Tensor sampling_log_probabilities(const at::Tensor& logits, const sampling_distribution& s,
                                      const at::Tensor* kept) {
  at::Tensor whole = at::log_softmax(s.temperature == 1.0 ? logits : logits / s.temperature, -1);
  if (s.top_p >= 1) return whole;
  const auto [sorted, order] = whole.detach().exp().sort(-1, /*descending=*/true);
  // The sum excludes the token itself, so that the most likely token is always in the nucleus.
  at::Tensor outside = at::zeros_like(whole, at::TensorOptions(at::kBool))
                           .scatter(-1, order, (sorted.cumsum(-1) - sorted) >= s.top_p);
  if (kept != nullptr) outside = outside.scatter(-1, kept->unsqueeze(-1), false);
  const at::Tensor inside = whole.masked_fill(outside, -std::numeric_limits<double>::infinity());
  return inside - inside.logsumexp(-1, /*keepdim=*/true);
}

at::Tensor token_log_probabilities(const at::Tensor& logits, const at::Tensor& targets,
                                   const sampling_distribution& s) {
  return sampling_log_probabilities(logits, s, &targets)
      .gather(-1, targets.unsqueeze(-1))
      .squeeze(-1);
}

at::Tensor grpo_loss(const at::Tensor& now, const at::Tensor& then, const at::Tensor& reference,
                     const at::Tensor& entropy, const at::Tensor& sequence,
                     const at::Tensor& advantages, const at::Tensor& weights,
                     const grpo_options& options) {
  const at::Tensor ratio = (now - then).clamp(-max_log_ratio, max_log_ratio).exp();
  const at::Tensor advantage = advantages.index_select(0, sequence);
  const at::Tensor clipped =
      at::minimum(ratio * advantage, ratio.clamp(1 - options.clip, 1 + options.clip) * advantage);
  at::Tensor gain =
      at::where(advantage < 0, at::maximum(clipped, options.dual_clip * advantage), clipped);
  if (options.kl_coefficient > 0) {
    const at::Tensor d = (reference - now).clamp(-max_log_ratio, max_log_ratio);
    gain = gain - options.kl_coefficient * (d.exp() - d - 1);
  }
  if (options.entropy_coefficient > 0) gain = gain + options.entropy_coefficient * entropy;
  const at::Tensor sums = at::zeros_like(advantages).index_add(0, sequence, gain);
  const at::Tensor counts =
      at::zeros_like(advantages).index_add(0, sequence, at::ones_like(gain.detach()));
  return -(sums / counts.clamp_min(1) * weights).sum();
}

}  // namespace hone
