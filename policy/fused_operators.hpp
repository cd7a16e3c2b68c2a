#pragma once

#include <cstdint>
#include <utility>

namespace at {
class Tensor;
}

namespace hone {

// Operators of a decoder that own kernels compute on a GPU, in one pass over their tensors, forwards
// and backwards (fused_kernels.cuh). The functions throw policy_error if the kernels cannot be
// compiled.

// Returns whether the functions below can be used for weights like this one: on a GPU of compute
// capability 8.0 or above.
bool can_fuse(const at::Tensor& like);

// Returns x [N, heads, head_width], each row rotated by its position's angles (rotary embedding, in
// halves). `turns` [P, head_width / 2, 2] (fp32) holds cosine and sine by position, `positions` is
// [N] (int32). Differentiable in x. head_width must be a multiple of 16.
at::Tensor fused_rotate(const at::Tensor& x, const at::Tensor& turns, const at::Tensor& positions);

// Returns silu(gate) up. Differentiable in both. The number of elements must be a multiple of 8.
at::Tensor fused_gate(const at::Tensor& gate, const at::Tensor& up);

// Returns ln p [M] (fp32) of `targets` [M] (int64) under the softmax of logits / temperature, and the
// entropies [M] (fp32) of the softmax of logits [M, V]. Differentiable in the logits once: the
// backward pass writes their gradients over them. V must be a multiple of 8.
std::pair<at::Tensor, at::Tensor> fused_token_numbers(const at::Tensor& logits,
                                                      const at::Tensor& targets,
                                                      double temperature);

// What an update of AdamW multiplies and adds; see fused_kernels.cuh.
struct adamw_numbers {
  double shrink = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double correction1 = 1;
  double correction2 = 1;
  double epsilon = 1e-8;
  double decay = 1;
  double rate = 0;
};

// Makes an update of `exact` (fp32) and, if it is another tensor, of `weight`, which has the dtype
// of `gradient`. `mean` and `square` are fp32.
void fused_adamw(const at::Tensor& gradient, at::Tensor& exact, at::Tensor& weight,
                 at::Tensor& mean, at::Tensor& square, const adamw_numbers& numbers);

}  // namespace hone
