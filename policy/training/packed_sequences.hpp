#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "policy/training/chunked_head.hpp"
#include "policy/training/distinct_rollouts.hpp"
#include "policy/training/trainer.hpp"

namespace hone {

// A micro batch as tensors on the trainer's device. Only for the .cpp files of
// this room, as it includes LibTorch.

// Concatenated sequences, with the M tokens to predict.
struct packed {
  at::Tensor tokens;  // [N] (int64)
  std::vector<std::int64_t> lengths;
  at::Tensor rows;     // [M] (int64): positions in `tokens` whose logits predict the targets
  at::Tensor targets;  // [M] (int64)

  prediction view() const { return {tokens, lengths, rows, targets}; }
};

packed pack(std::span<const token_sequence* const> sequences, const at::Device& device);

at::Tensor floats(const std::vector<float>& values, const at::Device& device);

// An example of supervised fine-tuning, with the weights of its targets.
struct weighted_sequence {
  token_sequence all;
  std::vector<float> weights;
};

weighted_sequence weigh(const sft_example& example, std::size_t context, double prompt_weight);

// Inputs of an objective for some rollouts: per token [M], and per rollout [S].
struct columns {
  std::vector<const token_sequence*> sequences;
  at::Tensor then;        // [M]
  at::Tensor proximal;    // [M]; undefined if the rollouts have none
  at::Tensor is_current;  // [M]: 1 for tokens that the trainer's weights have sampled, or 0
  at::Tensor sequence;    // [M] (int64): index of the token's rollout
  at::Tensor advantages;  // [S]
  at::Tensor weights;     // [S]

  columns(std::span<distinct_rollout* const> rollouts, const at::Device& device);
};

}  // namespace hone
