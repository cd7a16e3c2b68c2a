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

// Shape of a decoder, read from a Hugging Face config.json of model type llama, mistral, qwen2 or
// qwen3.
struct decoder_config {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;  // hidden_size
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // divides `heads` (grouped-query attention)
  std::int64_t head_width = 0;
  std::int64_t feed_forward = 0;  // intermediate_size
  std::int64_t context = 0;       // max_position_embeddings
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
  bool tied_head = false;       // the output head is the embedding matrix
  bool attention_bias = false;  // q, k and v have biases (Qwen2)
  bool output_bias = false;     // o has a bias as well (Llama with attention_bias)
  bool mlp_bias = false;
  bool head_norm = false;  // q and k have an RMSNorm per head (Qwen3)
  double initializer_range = 0.02;
  std::string rope_scaling = "none";  // none, linear or llama3
  double rope_factor = 1;
  double rope_low_frequency = 1;
  double rope_high_frequency = 4;
  double rope_original_context = 8192;
  std::string dtype = "float32";  // of the weights: float32, bfloat16 or float16
  std::int64_t end_token = -1;    // eos_token_id (the first one of a list); -1 if absent

  // Throws policy_error, which names the file and the key.
  static decoder_config load(const std::filesystem::path& config_json);
};

// Weights of a decoder by their Hugging Face names. Copies share the tensors.
class decoder_weights {
 public:
  decoder_weights();
  ~decoder_weights();
  decoder_weights(const decoder_weights&);
  decoder_weights& operator=(const decoder_weights&);
  decoder_weights(decoder_weights&&) noexcept;
  decoder_weights& operator=(decoder_weights&&) noexcept;

  // Returns initial weights: matrices from Normal(0, initializer_range), with the outputs of
  // residual branches scaled by 1 / sqrt(2 layers) as in GPT-2; ones for norms, zeros for biases.
  static decoder_weights random(const decoder_config& config, std::uint64_t seed);
  // Reads all *.safetensors files of the folder except optimizer.safetensors and converts the
  // weights to the config's dtype. Throws policy_error if a tensor is missing or has a wrong shape,
  // or if a file is damaged.
  static decoder_weights load(const std::filesystem::path& folder, const decoder_config& config);
  // Writes all weights to one safetensors file. Throws policy_error.
  void save(const std::filesystem::path& file) const;

  const std::map<std::string, at::Tensor>& all() const;
  std::map<std::string, at::Tensor>& all();
  // Returns the weights on a device in a dtype. A tensor that is already there in that dtype is
  // shared; others are copied. Throws policy_error if the dtype is not supported.
  decoder_weights to(const std::string& device, const std::string& dtype) const;
  // Returns the number of elements of all weights.
  std::int64_t parameters() const;

 private:
  std::unique_ptr<std::map<std::string, at::Tensor>> tensors_;
};

// A Llama-style decoder: RMSNorm, rotary embeddings in Hugging Face's half-split form,
// grouped-query attention, SwiGLU, tied or untied head. Computes whole sequences, for training and
// for tests; generation.hpp computes token by token. Immutable after construction; the weights are
// passed to each call, which runs on their device.
class decoder {
 public:
  explicit decoder(decoder_config config);
  ~decoder();
  decoder(decoder&&) noexcept;

  const decoder_config& config() const;

  // Returns logits [B, T, V] (fp32) of `tokens` [B, T] (int64). Attention is causal, and each
  // sequence starts at position 0. Differentiable in the weights.
  at::Tensor logits(const decoder_weights& weights, const at::Tensor& tokens) const;
  // Returns logits [M, V] (fp32) at `positions` [M] (int64) of `tokens` [N] (int64). `tokens` holds
  // sequences of these lengths one after the other, without padding (doc/decisions/007). Training
  // needs the logits of few positions, and logits are the largest tensors of all. Causal and
  // differentiable as logits().
  at::Tensor logits_at(const decoder_weights& weights, const at::Tensor& tokens,
                       std::span<const std::int64_t> lengths, const at::Tensor& positions) const;

  // Returns the cosines and sines of the rotary embedding, each [P, head_width] (fp32), for
  // `positions` [P] (int64).
  std::pair<at::Tensor, at::Tensor> rotary(const at::Tensor& positions) const;

 private:
  // Returns the normalised hidden states [N, width] of concatenated sequences.
  at::Tensor hidden(const decoder_weights& weights, const at::Tensor& tokens,
                    std::span<const std::int64_t> lengths) const;
  // Returns causal attention [N, heads * head_width] within each of the concatenated sequences,
  // from q [N, heads, head_width] and k and v [N, kv_heads, head_width].
  at::Tensor attend(const at::Tensor& q, at::Tensor k, at::Tensor v,
                    std::span<const std::int64_t> lengths) const;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
