#pragma once

#include <cstdint>
#include <vector>

#include "policy/decoder_config.hpp"

namespace at {
class Tensor;
}

namespace hone {

// Keys and values of the sequences that are being generated, by layer and slot. Its tensors are
// [slots, kv_heads, L, head_width], where L grows with the sequences, because room for a whole
// context in each slot may take more memory than everything else. Confined to one thread.
class key_value_cache {
 public:
  key_value_cache(const decoder_config& config, std::int64_t slots);
  key_value_cache(const key_value_cache&) = delete;
  key_value_cache& operator=(const key_value_cache&) = delete;
  ~key_value_cache();

  // Makes room for sequences of `length` tokens. `like` has the device and type of the tensors.
  void reserve(std::int64_t length, const at::Tensor& like);
  // Writes the keys and values of a prompt, by layer [kv_heads, T, head_width], to a slot.
  void write_prompt(std::int64_t slot, const std::vector<at::Tensor>& keys,
                    const std::vector<at::Tensor>& values);
  // Returns where write_tokens() puts the tokens at these positions, [n] (int64), in every layer.
  at::Tensor places(const at::Tensor& positions) const;
  // Writes the keys and values of one token of a layer, [n, kv_heads, head_width], to the first n
  // slots.
  void write_tokens(std::size_t layer, const at::Tensor& places, const at::Tensor& keys,
                    const at::Tensor& values);
  // Return the first `length` tokens of the first n slots in a layer: [n, kv_heads, length,
  // head_width].
  at::Tensor keys(std::size_t layer, std::int64_t n, std::int64_t length) const;
  at::Tensor values(std::size_t layer, std::int64_t n, std::int64_t length) const;
  // Copies the first `length` tokens of one slot to another.
  void move(std::int64_t from, std::int64_t to, std::int64_t length);

 private:
  decoder_config config_;
  std::int64_t slots_;
  std::vector<at::Tensor> keys_;  // by layer
  std::vector<at::Tensor> values_;
};

}  // namespace hone
