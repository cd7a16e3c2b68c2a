#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy/decoder_config.hpp"
#include "policy/network/decoder_weights.hpp"

namespace at {
class Tensor;
}

namespace hone {

// A Llama-style decoder: RMSNorm, rotary embeddings in Hugging Face's half-split form,
// grouped-query attention, SwiGLU, tied or untied head. Computes whole sequences, for training and
// for tests; generation.hpp computes token by token. Immutable after construction; the weights are
// passed to each call, which runs on their device.
class decoder {
 public:
  // `adapter_scale` is that of adapters in the weights (adapters.hpp), if they have some.
  explicit decoder(decoder_config config, double adapter_scale = 0);
  ~decoder();
  decoder(decoder&&) noexcept;

  const decoder_config& config() const;

  // Returns logits [B, T, V] (fp32) of `tokens` [B, T] (int64). Attention is causal, and each
  // sequence starts at position 0. Differentiable in the weights.
  at::Tensor logits(const decoder_weights& weights, const at::Tensor& tokens) const;
  // Returns the normalized hidden states [M, width] at `positions` [M] (int64) of `tokens` [N]
  // (int64), which head() turns into logits. `tokens` holds sequences of `lengths` tokens one after
  // the other, without padding. Causal and differentiable as logits().
  at::Tensor hidden_at(const decoder_weights& weights, const at::Tensor& tokens,
                       std::span<const std::int64_t> lengths, const at::Tensor& positions) const;
  // A forward pass that keeps of each layer only its input (activation checkpointing: Chen et al.
  // 2016, arXiv 1604.06174).
  struct checkpointed_pass {
    std::unique_ptr<at::Tensor> rows;  // as hidden_at() returns them
    // Adds the gradients of the layers to those of the weights, each layer computed once more. Must
    // be called once, after gradients of `rows` have been computed by backward().
    std::function<void()> finish;
  };
  // `weights` and `tokens` must outlive the pass.
  checkpointed_pass checkpointed_hidden_at(const decoder_weights& weights, const at::Tensor& tokens,
                                           std::span<const std::int64_t> lengths,
                                           const at::Tensor& positions) const;
  // Return the logits [..., V] of normalized hidden states [..., width]: in fp32, or in the
  // weights' dtype, in which the network computes them.
  at::Tensor head(const decoder_weights& weights, const at::Tensor& hidden) const;
  at::Tensor unconverted_head(const decoder_weights& weights, const at::Tensor& hidden) const;

  // Returns the cosines and sines of the rotary embedding, each [P, head_width] (fp32), for
  // `positions` [P] (int64).
  std::pair<at::Tensor, at::Tensor> rotary(const at::Tensor& positions) const;
  // Returns cosine and sine of positions 0 to `count` - 1 as kernels read them: [count,
  // head_width / 2, 2] (fp32) on a device of `like`.
  at::Tensor turns(std::int64_t count, const at::Tensor& like) const;

 private:
  // The layout of concatenated sequences, for the layers.
  struct layout;
  layout lay_out(std::span<const std::int64_t> lengths, const at::Tensor& like) const;
  struct residual;
  // Returns the hidden states [N, width] behind a layer, from those before it.
  residual layer(const decoder_weights& weights, std::int64_t index, const residual& before,
                 const layout& of) const;
  // Returns the sum of a residual, and its norm.
  std::pair<at::Tensor, at::Tensor> add_and_norm(const decoder_weights& weights,
                                                 const residual& before, const std::string& name,
                                                 const layout& of) const;
  at::Tensor linear(const decoder_weights& weights, const at::Tensor& x,
                    const std::string& name) const;
  at::Tensor joined_linear(const decoder_weights& weights, const at::Tensor& x,
                           const std::vector<std::string>& names) const;
  at::Tensor norm(const decoder_weights& weights, const at::Tensor& x,
                  const std::string& name) const;
  // Returns the normalized hidden states [N, width] of concatenated sequences.
  at::Tensor hidden(const decoder_weights& weights, const at::Tensor& tokens,
                    std::span<const std::int64_t> lengths) const;
  // Returns causal attention [N, heads * head_width] within each of the concatenated sequences,
  // from q [N, heads, head_width] and k and v [N, kv_heads, head_width].
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const layout& of) const;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
