#include "policy/sampling/gpu_layers.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <sstream>

#include "embedded/policy_elements.hpp"
#include "embedded/sampling_attention.hpp"
#include "embedded/sampling_drawing.hpp"
#include "embedded/sampling_layers.hpp"
#include "policy/network/transformer.hpp"
#include "policy/sampling/page_book.hpp"

namespace hone {
namespace {

enum kernel : std::size_t { embed, add_and_norm, rotate_and_keep, gate, attend, join, draw_kernel };

std::vector<std::string> macros(const decoder_config& c, const gpu_layers::sizes& most) {
  const auto set = [](const char* name, std::int64_t value) {
    return std::string(name) + "=" + std::to_string(value);
  };
  std::ostringstream epsilon;
  epsilon << std::scientific << c.norm_epsilon << "f";
  return {set("WIDTH", c.width),
          set("HEADS", c.heads),
          set("KV_HEADS", c.kv_heads),
          set("HEAD", c.head_width),
          set("FEED", c.feed_forward),
          set("VOCABULARY", c.vocabulary),
          set("TABLE", most.table_pages),
          c.dtype == "bfloat16" ? "ELEMENT=__nv_bfloat16" : "ELEMENT=__half",
          c.dtype == "bfloat16" ? "MMA_TYPE=\"bf16\"" : "MMA_TYPE=\"f16\"",
          "EPSILON=" + epsilon.str()};
}

// Address of a tensor's elements for a kernel; null for an undefined tensor.
void* address(const at::Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

unsigned blocks(std::int64_t items, std::int64_t in_block) {
  return static_cast<unsigned>((items + in_block - 1) / in_block);
}

constexpr unsigned threads = 128;

}  // namespace

const std::string& gpu_layers::kernel_source() {
  static const std::string source =
      std::string(embedded::policy_elements) + std::string(embedded::sampling_layers) +
      std::string(embedded::sampling_attention) + std::string(embedded::sampling_drawing);
  return source;
}

const std::vector<std::string>& gpu_layers::kernel_names() {
  static const std::vector<std::string> names = {
      "embed", "add_and_norm", "rotate_and_keep", "gate", "attend", "join", "draw"};
  return names;
}

gpu_layers::gpu_layers(const decoder_config& config, const joined_weights& weights,
                       const sizes& most, CUstream stream)
    : config_(config),
      weights_(weights),
      stream_(stream),
      kernels_(weights.embedding.device().index(), kernel_source(), macros(config, most),
               kernel_names()) {
  const decoder_config& c = config_;
  const auto options = weights.embedding.options();
  turns_ = decoder(c).turns(c.context, weights.embedding);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    // Places that hold no token yet are read with a weight of 0, so they must hold finite numbers.
    keys_.push_back(at::zeros({most.pages, c.kv_heads, page_tokens, c.head_width}, options));
    values_.push_back(at::zeros({most.pages, c.kv_heads, c.head_width, page_tokens}, options));
  }
  const auto buffer = [&](std::int64_t width) { return at::empty({most.rows, width}, options); };
  x_ = buffer(c.width);
  h_ = buffer(c.width);
  change_ = buffer(c.width);
  qkv_ = buffer(head_rows() * c.head_width);
  mixed_ = buffer(c.heads * c.head_width);
  gate_up_ = buffer(2 * c.feed_forward);
  product_ = buffer(c.feed_forward);
  logits_ = at::empty({most.slots, c.vocabulary}, options);
  const auto fp32 = options.dtype(at::kFloat);
  sums_ = at::empty({most.parts, c.kv_heads, part_queries, c.head_width}, fp32);
  sum_weights_ = at::empty({most.parts, c.kv_heads, part_queries, 2}, fp32);
}

void gpu_layers::run(std::int64_t n, const token_rows& rows,
                     const std::function<void(std::size_t layer)>& attend_layer) {
  const auto per_token = launch_shape{static_cast<unsigned>(n), 1, threads, 1};
  const auto part = [n](const at::Tensor& buffer) { return buffer.narrow(0, 0, n); };
  at::Tensor h = part(h_);
  at::Tensor qkv = part(qkv_);
  at::Tensor change = part(change_);
  at::Tensor gate_up = part(gate_up_);
  const auto multiply = [](at::Tensor& to, const at::Tensor& a, const at::Tensor& matrix) {
    at::mm_out(to, a, matrix.t());
  };
  const auto add_norm = [&](const at::Tensor& bias, const at::Tensor& norm) {
    kernels_.launch(add_and_norm, stream_, per_token, address(change_), address(bias),
                    address(norm), address(x_), address(h_));
  };
  kernels_.launch(embed, stream_, per_token, rows.tokens, address(weights_.embedding),
                  address(weights_.layers.front().input_norm), address(x_), address(h_));
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const joined_weights::layer& w = weights_.layers[i];
    multiply(qkv, h, w.qkv);
    kernels_.launch(rotate_and_keep, stream_, per_token, address(qkv_), address(w.qkv_bias),
                    address(w.q_norm), address(w.k_norm), address(turns_), rows.positions,
                    rows.places, address(keys_[i]), address(values_[i]));
    attend_layer(i);
    multiply(change, part(mixed_), w.output);
    add_norm(w.output_bias, w.after_norm);
    multiply(gate_up, h, w.gate_up);
    kernels_.launch(gate, stream_,
                    launch_shape{blocks(config_.feed_forward, 8 * threads),
                                 static_cast<unsigned>(n), threads, 1},
                    address(gate_up_), address(w.gate_up_bias), address(product_));
    multiply(change, part(product_), w.down);
    add_norm(w.down_bias, i + 1 < weights_.layers.size() ? weights_.layers[i + 1].input_norm
                                                         : weights_.final_norm);
  }
}

void gpu_layers::attend_pages(std::size_t layer, std::int64_t n, const device_plan& plan) const {
  // Base 2, because exp2 is the GPU's own exponential.
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config_.head_width)) *
                                         std::numbers::log2e);
  kernels_.launch(attend, stream_,
                  launch_shape{blocks(max_parts(n, config_.kv_heads), threads / 32),
                               static_cast<unsigned>(config_.kv_heads), threads, 1},
                  address(qkv_), address(keys_[layer]), address(values_[layer]), plan.table,
                  plan.parts, plan.part_count, plan.members, scale, address(sums_),
                  address(sum_weights_));
  kernels_.launch(
      join, stream_,
      launch_shape{static_cast<unsigned>(n), blocks(config_.heads, threads / 32), threads, 1},
      plan.slots, address(sums_), address(sum_weights_), address(mixed_));
}

at::Tensor gpu_layers::logits(const at::Tensor& hidden) {
  at::Tensor to = logits_.narrow(0, 0, hidden.size(0));
  at::mm_out(to, hidden, weights_.head.t());
  return to;
}

void gpu_layers::draw(const at::Tensor& logits, const float* uniform, float temperature,
                      int* tokens, float* log_probabilities) const {
  constexpr unsigned draw_threads = 512;  // as in kernels/drawing.cuh
  kernels_.launch(draw_kernel, stream_,
                  launch_shape{static_cast<unsigned>(logits.size(0)), 1, draw_threads, 1},
                  address(logits), uniform, temperature, tokens, log_probabilities);
}

}  // namespace hone
