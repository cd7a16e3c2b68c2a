#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  // eos_token_id of generation_config.json or, if that says none, of config.json; empty if absent.
  std::vector<std::int64_t> end_tokens;

  // Reads config.json and a generation_config.json next to it. Throws policy_error, which names the
  // file and the key.
  static decoder_config load(const std::filesystem::path& config_json);

  bool operator==(const decoder_config&) const = default;
};

// The type that a policy is computed in. `automatic`: the type of the folder's weights on GPUs, and
// float32 on CPUs, where LibTorch's products of smaller types take about ten times as long.
enum class compute_dtype { automatic, float32, bfloat16, float16 };
std::string_view name_of(compute_dtype dtype);
std::optional<compute_dtype> compute_dtype_named(std::string_view name);

// Returns the configuration of a Hugging Face folder with the dtype that a device ("cpu", "cuda:N")
// computes in. Throws policy_error.
decoder_config load_config_for(const std::string& device, const std::filesystem::path& folder,
                               compute_dtype dtype);

}  // namespace hone
