#include "policy/training/objectives.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "messages/value_names.hpp"

namespace hone {
namespace {

constexpr std::array<std::string_view, 3> mean_names = {"sequence", "token", "limit"};

at::Tensor clipped_exp(const at::Tensor& log_ratio) {
  return log_ratio.clamp(-max_log_ratio, max_log_ratio).exp();
}

}  // namespace

at::Tensor sft_loss(const at::Tensor& log_probabilities, const at::Tensor& weights, double whole) {
  return -(log_probabilities * weights).sum() / std::max(whole, 1e-12);
}

double highest_ratio(const grpo_options& options) {
  return 1 + (options.clip_high > 0 ? options.clip_high : options.clip);
}

at::Tensor grpo_loss(const grpo_tokens& tokens, const at::Tensor& advantages,
                     const at::Tensor& weights, const grpo_options& options) {
  const at::Tensor ratio = clipped_exp(tokens.now - tokens.then);
  const at::Tensor advantage = advantages.index_select(0, tokens.sequence);
  const double highest = highest_ratio(options);
  const at::Tensor clipped =
      at::minimum(ratio * advantage, ratio.clamp(1 - options.clip, highest) * advantage);
  at::Tensor gain =
      tokens.importance *
      at::where(advantage < 0, at::maximum(clipped, options.dual_clip * advantage), clipped);
  if (options.kl_coefficient > 0) {
    const at::Tensor d = (tokens.reference - tokens.now).clamp(-max_log_ratio, max_log_ratio);
    gain = gain - options.kl_coefficient * (d.exp() - d - 1);
  }
  if (options.entropy_coefficient > 0) gain = gain + options.entropy_coefficient * tokens.entropy;
  const at::Tensor sums = at::zeros_like(advantages).index_add(0, tokens.sequence, gain);
  const at::Tensor counts =
      at::zeros_like(advantages).index_add(0, tokens.sequence, at::ones_like(gain.detach()));
  return -(sums / counts.clamp_min(1) * weights).sum();
}

at::Tensor importance_weights(const at::Tensor& proximal, const at::Tensor& then, double limit) {
  return clipped_exp(proximal - then).clamp_max(limit);
}

std::string_view name_of(loss_mean mean) { return mean_names[static_cast<std::size_t>(mean)]; }

std::optional<loss_mean> loss_mean_named(std::string_view name) {
  return value_named<loss_mean>(mean_names, name);
}

std::vector<double> sequence_weights(loss_mean mean, std::span<const double> shares,
                                     std::span<const std::size_t> lengths, std::size_t limit) {
  std::vector<double> weights(shares.begin(), shares.end());
  if (mean == loss_mean::sequence) return weights;
  double tokens = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] *= static_cast<double>(lengths[i]);
    tokens += weights[i];
  }
  const double whole = mean == loss_mean::token ? tokens : static_cast<double>(limit);
  for (double& weight : weights) weight /= std::max(whole, 1e-12);
  return weights;
}

}  // namespace hone
