#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda/kernel_module.hpp"
#include "policy/sampling/attention_plan.hpp"
#include "policy/sampling/joined_weights.hpp"

namespace hone {

// A decoder's layers over rows of tokens on one GPU, in bfloat16 or float16: matrix products by
// LibTorch, and what lies between them by own kernels (kernels/). All buffers are made
// once, so that a CUDA graph can record any of it. Everything is queued on one stream, which must
// be LibTorch's current one. Only for the .cpp files of this room, as it includes LibTorch.
class gpu_layers {
 public:
  struct sizes {
    std::int64_t rows = 0;   // most tokens at once
    std::int64_t slots = 0;  // most rows that tokens are drawn for, and that attend to pages
    std::int64_t pages = 0;
    std::int64_t table_pages = 0;  // in a row of the page table
    std::int64_t parts = 0;        // most parts of an attention_plan
  };
  // The source of the kernels, and their names.
  static const std::string& kernel_source();
  static const std::vector<std::string>& kernel_names();

  // Device addresses of what each token brings: id, position, and place in the pages or -1 (int32).
  struct token_rows {
    const int* tokens = nullptr;
    const int* positions = nullptr;
    const int* places = nullptr;
  };
  // Device addresses of an attention_plan, and of the page table.
  struct device_plan {
    const int* table = nullptr;
    const attention_part* parts = nullptr;
    const int* part_count = nullptr;
    const slot_parts* slots = nullptr;
    const int* members = nullptr;
  };

  // `weights` must outlive the layers, and its tensors must stay where they are. Throws
  // std::runtime_error.
  gpu_layers(const decoder_config& config, const joined_weights& weights, const sizes& most,
             CUstream stream);

  // Runs the layers on `n` tokens. `attend` is called for each layer: it reads q, k and v from
  // queries() and writes to mixed(). The normalized hidden states are in hidden() then.
  void run(std::int64_t n, const token_rows& rows,
           const std::function<void(std::size_t layer)>& attend);
  // Attention of `n` slots to the pages of a layer, for run().
  void attend_pages(std::size_t layer, std::int64_t n, const device_plan& plan) const;
  // Computes the logits [n, V] of hidden states [n, width]; they stay valid until the next call.
  at::Tensor logits(const at::Tensor& hidden);
  // Returns the first n rows of what the last call has computed.
  at::Tensor last_logits(std::int64_t n) const { return logits_.narrow(0, 0, n); }
  // Draws a token for each row of logits, with uniform numbers (negative: the most likely one).
  void draw(const at::Tensor& logits, const float* uniform, float temperature, int* tokens,
            float* log_probabilities) const;

  at::Tensor queries(std::int64_t n) const { return qkv_.narrow(0, 0, n); }  // q, k and v
  at::Tensor mixed(std::int64_t n) const { return mixed_.narrow(0, 0, n); }
  at::Tensor hidden(std::int64_t n) const { return h_.narrow(0, 0, n); }

 private:
  std::int64_t head_rows() const { return config_.heads + 2 * config_.kv_heads; }

  decoder_config config_;
  const joined_weights& weights_;
  CUstream stream_;
  kernel_module kernels_;
  at::Tensor turns_;                // [context, head_width / 2, 2] (fp32): cosine and sine
  std::vector<at::Tensor> keys_;    // by layer: [pages, kv_heads, 32, head_width]
  std::vector<at::Tensor> values_;  // by layer: [pages, kv_heads, head_width, 32]
  at::Tensor x_, h_, qkv_, mixed_, change_, gate_up_, product_, logits_;
  at::Tensor sums_, sum_weights_;  // of attention
};

}  // namespace hone
