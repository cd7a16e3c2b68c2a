#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "policy/network/decoder_weights.hpp"

namespace hone {

// Low-rank adapters (LoRA: Hu et al. 2021, arXiv 2106.09685). A matrix W [out, in] of the policy
// becomes W + alpha / rank B A, where A [rank, in] and B [out, rank] are trained and W stays as it
// is. Their names are those of the matrices, with `.lora_A.weight` and `.lora_B.weight` for
// `.weight`; they are float32.
struct adapter_options {
  std::int64_t rank = 0;  // 0: no adapters; all weights are trained
  double alpha = 32;
  // Projections of each layer that have adapters.
  std::vector<std::string> modules = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                      "gate_proj", "up_proj", "down_proj"};

  double scale() const { return rank > 0 ? alpha / static_cast<double>(rank) : 0; }
};

// Returns adapters that change nothing yet: A uniform in +-1 / sqrt(in), B zero. Throws
// policy_error if no matrix of `weights` belongs to one of the modules.
decoder_weights make_adapters(const decoder_weights& weights, const adapter_options& o,
                              std::uint64_t seed);

// Returns the matrix `name` ("model.layers.0.mlp.up_proj.weight") with its adapters, if it has some
// in `weights`, in its own dtype. Differentiable in them.
at::Tensor adapted_matrix(const decoder_weights& weights, const std::string& name, double scale);

// Returns the weights without adapters that compute the same. Tensors without adapters are shared.
decoder_weights merge_adapters(const decoder_weights& weights, double scale);

// Writes adapters in the format of the package `peft` to a folder: adapter_model.safetensors, and
// adapter_config.json, which names the folder of the other weights. Throws policy_error.
void save_adapters(const std::filesystem::path& folder, const decoder_weights& adapters,
                   const adapter_options& o, const std::filesystem::path& base);
// Lets the adapters in a folder belong to the weights in another folder. Throws policy_error.
void set_adapter_base(const std::filesystem::path& folder, const std::filesystem::path& base);
// True if a folder holds adapters.
bool has_adapters(const std::filesystem::path& folder);
struct saved_adapters {
  decoder_weights adapters;
  adapter_options options;
  std::filesystem::path base;
};
// Reads what save_adapters() or `peft` has written. A relative path of the other weights counts
// from the folder. Throws policy_error.
saved_adapters load_adapters(const std::filesystem::path& folder);

}  // namespace hone
