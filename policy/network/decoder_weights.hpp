#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/decoder_config.hpp"

namespace at {
class Tensor;
}

namespace hone {

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
  // Each kind of device draws other numbers for a seed.
  static decoder_weights random(const decoder_config& config, std::uint64_t seed,
                                const std::string& device = "cpu");
  // Reads model.safetensors, or the files that model.safetensors.index.json names or, without
  // these, all *.safetensors files of the folder except the optimizer's and adapters', and converts
  // the weights to the config's dtype. A folder of adapters (adapters.hpp) gives the weights that
  // they belong to, merged with them. Throws policy_error if a file or a tensor is missing, if a
  // tensor has a wrong shape, or if a file is damaged.
  static decoder_weights load(const std::filesystem::path& folder, const decoder_config& config);
  // Reads the heads of these files alone. Throws policy_error if there are none, or one is damaged.
  static void require_files(const std::filesystem::path& folder);
  // Loads weights that are not our own. Also throws policy_error if one is not finite.
  static decoder_weights load_finite(const std::filesystem::path& folder,
                                     const decoder_config& config);
  // Writes all weights to one safetensors file. Throws policy_error.
  void save(const std::filesystem::path& file) const;

  const std::map<std::string, at::Tensor>& all() const;
  std::map<std::string, at::Tensor>& all();
  // Returns the weights on a device in a dtype. A tensor that is already there in that dtype is
  // shared; others are copied. Throws policy_error if the dtype is not supported.
  decoder_weights to(const std::string& device, const std::string& dtype) const;
  // Returns copies on a device in a dtype.
  decoder_weights copied_to(const std::string& device, const std::string& dtype) const;
  // Returns copies in the host's memory, page-locked if the weights are on a GPU.
  decoder_weights on_host() const;
  // Returns the name of a tensor that holds a value that is not finite; none if all are.
  std::optional<std::string> find_not_finite() const;
  // Returns the number of elements of all weights.
  std::int64_t parameters() const;
  // Returns the shape of each tensor by name.
  std::map<std::string, std::vector<std::int64_t>> shapes() const;

 private:
  std::unique_ptr<std::map<std::string, at::Tensor>> tensors_;
};

}  // namespace hone
