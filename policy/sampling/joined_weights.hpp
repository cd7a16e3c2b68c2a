#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "policy/decoder_config.hpp"
#include "policy/network/decoder_weights.hpp"

namespace hone {

// A decoder's weights as the sampler needs them: the projections of q, k and v are one matrix, and
// so are those of gate and up. The tensors are copies. Those that a model does not have are
// undefined. Only for the .cpp files of this room, as it includes LibTorch.
struct joined_weights {
  struct layer {
    at::Tensor input_norm, qkv, qkv_bias, output, output_bias, q_norm, k_norm, after_norm, gate_up,
        gate_up_bias, down, down_bias;
  };
  std::vector<layer> layers;
  at::Tensor embedding, head, final_norm;

  // Copies the weights. From the second call on, it writes into the same tensors, since CUDA graphs
  // have recorded their addresses; device, dtype and shapes must then be those of the first call.
  void assign(const decoder_weights& weights, const decoder_config& config);
};

}  // namespace hone
