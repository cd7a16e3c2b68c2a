#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace hone {

// A decoder's shape: a Hugging Face config.json of the Llama, Qwen2 or Qwen3 kind.
struct decoder_config {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;  // hidden_size
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // grouped-query attention: heads a multiple of it
  std::int64_t head_width = 0;
  std::int64_t feed_forward = 0;  // intermediate_size
  std::int64_t context = 0;       // max_position_embeddings
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
  bool tied_head = false;
  bool attention_bias = false;  // on q, k and v (Qwen2)
  bool output_bias = false;     // on o as well (Llama with attention_bias)
  bool mlp_bias = false;
  bool head_norm = false;  // RMSNorm of q and k per head (Qwen3)
  double initializer_range = 0.02;
  std::string rope_scaling = "none";  // none, linear, llama3
  double rope_factor = 1;
  double rope_low_frequency = 1;
  double rope_high_frequency = 4;
  double rope_original_context = 8192;
  std::string dtype = "float32";  // of the weights: float32, bfloat16, float16
  std::int64_t end_token = -1;    // eos_token_id (the first of several); -1: none is named

  // Throws policy_error, naming the file and the key.
  static decoder_config load(const std::filesystem::path& config_json);
};

// Weights by their Hugging Face names. Copying shares the tensors.
class decoder_weights {
 public:
  decoder_weights();
  ~decoder_weights();
  decoder_weights(const decoder_weights&);
  decoder_weights& operator=(const decoder_weights&);
  decoder_weights(decoder_weights&&) noexcept;
  decoder_weights& operator=(decoder_weights&&) noexcept;

  // Normal(0, initializer_range) for matrices (residual outputs scaled by 1 / sqrt(2 layers), as
  // GPT-2's), ones for norms.
  static decoder_weights random(const decoder_config& config, std::uint64_t seed);
  // All *.safetensors of the folder. Throws policy_error for what is missing, of the wrong shape,
  // or damaged.
  static decoder_weights load(const std::filesystem::path& folder, const decoder_config& config);
  // One file model.safetensors with these weights.
  void save(const std::filesystem::path& file) const;

  const std::map<std::string, at::Tensor>& all() const;
  std::map<std::string, at::Tensor>& all();
  decoder_weights to(const std::string& device,
                     const std::string& dtype) const;  // copies where something changes
  std::int64_t parameters() const;

 private:
  std::unique_ptr<std::map<std::string, at::Tensor>> tensors_;
};

// A Llama-style decoder: RMSNorm, rotary embeddings in Hugging Face's half-split form,
// grouped-query attention, SwiGLU, tied or untied head. Whole sequences for training and checking;
// generation has its own steps in generation.hpp.
class decoder {
 public:
  explicit decoder(decoder_config config);
  ~decoder();
  decoder(decoder&&) noexcept;

  const decoder_config& config() const;

  // tokens [B, T] (int64) -> logits [B, T, V] in fp32. Causal; sequences start at position 0.
  // Differentiable in the weights.
  at::Tensor logits(const decoder_weights& weights, const at::Tensor& tokens) const;
  // Sequences of different lengths one after the other, tokens [N] (int64), and only the rows that
  // `positions` [M] (int64) names: [M, V]. Nothing is padded, and training needs the logits of few
  // tokens: they are the largest thing there is.
  at::Tensor logits_at(const decoder_weights& weights, const at::Tensor& tokens,
                       std::span<const std::int64_t> lengths, const at::Tensor& positions) const;

  // cos and sin [positions, head_width] for these positions (int64), fp32.
  std::pair<at::Tensor, at::Tensor> rotary(const at::Tensor& positions) const;

 private:
  at::Tensor hidden(const decoder_weights& weights, const at::Tensor& tokens,
                    std::span<const std::int64_t> lengths) const;
  at::Tensor attend(const at::Tensor& q, at::Tensor k, at::Tensor v,
                    std::span<const std::int64_t> lengths) const;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
