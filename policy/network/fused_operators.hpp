#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace at {
class Tensor;
}

namespace hone {

// Operators of a decoder that own kernels compute on a GPU, in one pass over their tensors,
// forwards and backwards (fused_kernels.cuh). The functions throw policy_error if the kernels
// cannot be compiled.

// Return the source of the kernels and their names, for tests that compile them without a GPU.
const std::string& fused_kernel_source();
const std::vector<std::string>& fused_kernel_names();

// Returns whether the functions below can be used for weights like this one: on a GPU of compute
// capability 8.0 or above.
bool can_fuse(const at::Tensor& like);

// Returns x [N, heads, head_width], each row rotated by its position's angles (rotary embedding, in
// halves). `turns` [P, head_width / 2, 2] (fp32) holds cosine and sine by position, `positions` is
// [N] (int32). Differentiable in x. head_width must be a multiple of 16.
at::Tensor fused_rotate(const at::Tensor& x, const at::Tensor& turns, const at::Tensor& positions);

// Returns q [N, heads, head_width] and k [N, kv_heads, head_width], rotated in this way, and v,
// from qkv [N, (heads + 2 kv_heads) head_width]. Differentiable in qkv.
std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_split(const at::Tensor& qkv,
                                                           const at::Tensor& turns,
                                                           const at::Tensor& positions,
                                                           std::int64_t heads,
                                                           std::int64_t kv_heads);

// Returns silu(gate) up [N, F] of gate_up [N, 2 F], whose rows hold the gates and then the ups.
// Differentiable. F must be a multiple of 8.
at::Tensor fused_gate(const at::Tensor& gate_up);

// The widest rows of fused_add_and_norm().
inline constexpr std::int64_t widest_norm = 4096;

// Returns y = x + change [N, width] and the RMSNorm of y with this weight. Differentiable in x,
// change and weight. The width must be a multiple of 8, at most widest_norm.
std::pair<at::Tensor, at::Tensor> fused_add_and_norm(const at::Tensor& x, const at::Tensor& change,
                                                     const at::Tensor& weight, double epsilon);

// Returns ln p [M] (fp32) of `targets` [M] (int64) under the softmax of logits / temperature, and
// the entropies [M] (fp32) of the softmax of logits [M, V]. Differentiable in the logits once: the
// backward pass writes their gradients over them. V must be a multiple of 8.
std::pair<at::Tensor, at::Tensor> fused_token_numbers(const at::Tensor& logits,
                                                      const at::Tensor& targets,
                                                      double temperature);

// The coefficients of an AdamW update; see fused_kernels.cuh.
struct adamw_numbers {
  double max_norm = 1;  // of all gradients together, which are shrunk if it is larger
  double beta1 = 0.9;
  double beta2 = 0.999;
  double correction1 = 1;
  double correction2 = 1;
  double epsilon = 1e-8;
  double decay = 1;
  double rate = 0;
};

// Makes an update of `exact` (fp32) and, if it is another tensor, of `weight`, which has the dtype
// of `gradient`. `mean` and `square` are fp32. `norm` [] (fp32) is that of all gradients; if it is
// not finite, nothing changes.
void fused_adamw(const at::Tensor& gradient, at::Tensor& exact, at::Tensor& weight,
                 at::Tensor& mean, at::Tensor& square, const at::Tensor& norm,
                 const adamw_numbers& numbers);

}  // namespace hone
