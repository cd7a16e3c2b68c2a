#include "policy/network/sampling_distribution.hpp"

#include <ATen/ATen.h>

#include <limits>

namespace hone {

at::Tensor sampling_log_probabilities(const at::Tensor& logits, const sampling_distribution& s,
                                      const at::Tensor* kept) {
  const at::Tensor whole =
      at::log_softmax(s.temperature == 1.0 ? logits : logits / s.temperature, -1);
  const bool has_top_k = s.top_k > 0 && s.top_k < logits.size(-1);
  if (s.top_p >= 1 && !has_top_k && s.min_p <= 0) return whole;
  const at::Tensor p = whole.detach().exp();
  at::Tensor outside = at::zeros_like(whole, at::TensorOptions(at::kBool));
  if (s.top_p < 1) {
    const auto [sorted, order] = p.sort(-1, /*descending=*/true);
    // The sum excludes the token itself, so that the most likely token is always in the nucleus.
    outside = outside.scatter(-1, order, (sorted.cumsum(-1) - sorted) >= s.top_p);
  }
  if (has_top_k)
    outside = outside | (p < std::get<0>(p.topk(s.top_k, -1)).narrow(-1, s.top_k - 1, 1));
  if (s.min_p > 0) outside = outside | (p < s.min_p * p.amax(-1, /*keepdim=*/true));
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

}  // namespace hone
