#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "policy/network/sampling_distribution.hpp"
#include "policy/network/transformer.hpp"

namespace hone {

// Logits [M, V] of many tokens of a large vocabulary are larger than everything else that training
// holds. What a loss needs of them is a number or two per token, so they are computed for some
// tokens after the other: logits of at most `max_logits` elements, and of at least one token, are
// held at a time.

// Most elements where LibTorch's operators compute the loss, since they hold several float32
// tensors of that size: 256 MiB each.
inline constexpr std::int64_t max_unfused_logits = std::int64_t{1} << 26;

// Tokens that the network reads, and those that it is to predict, as decoder::hidden_at() takes
// them.
struct prediction {
  const at::Tensor& tokens;  // [N] (int64)
  std::span<const std::int64_t> lengths;
  const at::Tensor& rows;     // [M] (int64): positions whose logits predict the targets
  const at::Tensor& targets;  // [M] (int64)
};

// Returns ln p [M] of the targets under the sampling distribution, without gradients.
at::Tensor target_log_probabilities(const decoder& network, const decoder_weights& weights,
                                    const prediction& p, const sampling_distribution& s,
                                    std::int64_t max_logits);

// A loss as a function of ln p [M] of the targets and of the entropies [M] of the tokens' softmax.
using token_loss =
    std::function<at::Tensor(const at::Tensor& log_probabilities, const at::Tensor& entropies)>;

// Whether a loss reads entropies; they are undefined tensors if not.
enum class entropies { read, ignored };

// The values that are computed twice to save memory.
enum class recomputation {
  logits,             // those that do not fit at once
  logits_and_layers,  // and every layer (decoder::checkpointed_hidden_at)
};

// Computes a loss and adds its gradients to those of the weights. Returns the loss, detached. If
// the logits do not fit at once, they are computed twice: for the loss, and for the gradients once
// it is known what the loss asks of each token.
at::Tensor add_gradients(const decoder& network, const decoder_weights& weights,
                         const prediction& p, const sampling_distribution& s,
                         std::int64_t max_logits, recomputation again, entropies use,
                         const token_loss& loss);

}  // namespace hone
