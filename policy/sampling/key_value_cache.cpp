#include "policy/sampling/key_value_cache.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace hone {
namespace {

constexpr std::int64_t growth = 256;  // tokens by which the room grows

}  // namespace

key_value_cache::key_value_cache(const decoder_config& config, std::int64_t slots)
    : config_(config), slots_(slots) {}
key_value_cache::~key_value_cache() = default;

void key_value_cache::reserve(std::int64_t length, const at::Tensor& like) {
  const std::int64_t before = keys_.empty() ? 0 : keys_.front().size(2);
  if (length <= before) return;
  const std::int64_t after = std::min(config_.context, (length + growth - 1) / growth * growth);
  for (auto* tensors : {&keys_, &values_}) {
    tensors->resize(static_cast<std::size_t>(config_.layers));
    for (at::Tensor& of_layer : *tensors) {
      const at::Tensor longer =
          at::zeros({slots_, config_.kv_heads, after, config_.head_width}, like.options());
      if (of_layer.defined()) longer.narrow(2, 0, before).copy_(of_layer);
      of_layer = longer;
    }
  }
}

void key_value_cache::write_prompt(std::int64_t slot, const std::vector<at::Tensor>& keys,
                                   const std::vector<at::Tensor>& values) {
  for (std::size_t layer = 0; layer < keys_.size(); ++layer) {
    const std::int64_t length = keys[layer].size(1);
    keys_[layer].select(0, slot).narrow(1, 0, length).copy_(keys[layer]);
    values_[layer].select(0, slot).narrow(1, 0, length).copy_(values[layer]);
  }
}

at::Tensor key_value_cache::places(const at::Tensor& positions) const {
  const std::int64_t n = positions.size(0);
  return positions.view({n, 1, 1, 1}).expand({n, config_.kv_heads, 1, config_.head_width});
}

void key_value_cache::write_tokens(std::size_t layer, const at::Tensor& places,
                                   const at::Tensor& keys, const at::Tensor& values) {
  const std::int64_t n = places.size(0);
  keys_[layer].narrow(0, 0, n).scatter_(2, places, keys.unsqueeze(2));
  values_[layer].narrow(0, 0, n).scatter_(2, places, values.unsqueeze(2));
}

at::Tensor key_value_cache::keys(std::size_t layer, std::int64_t n, std::int64_t length) const {
  return keys_[layer].narrow(0, 0, n).narrow(2, 0, length);
}

at::Tensor key_value_cache::values(std::size_t layer, std::int64_t n, std::int64_t length) const {
  return values_[layer].narrow(0, 0, n).narrow(2, 0, length);
}

void key_value_cache::move(std::int64_t from, std::int64_t to, std::int64_t length) {
  for (auto* tensors : {&keys_, &values_}) {
    for (at::Tensor& of_layer : *tensors)
      of_layer.select(0, to)
          .narrow(1, 0, length)
          .copy_(of_layer.select(0, from).narrow(1, 0, length));
  }
}

}  // namespace hone
