#include "policy/network/weight_shards.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace hone {
namespace {

// Elements that a tensor's place in a buffer is a multiple of, so that kernels can read vectors.
constexpr std::int64_t alignment = 64;
// Most elements of gradients that are on their way to an owner at a time.
constexpr std::int64_t max_on_the_way = std::int64_t{1} << 26;

std::int64_t place_of(const at::Tensor& tensor) {
  return (tensor.numel() + alignment - 1) / alignment * alignment;
}

// Gives each tensor, the largest first, to the owner that has the fewest elements so far.
std::map<std::string, std::size_t> divide(const std::map<std::string, at::Tensor>& tensors,
                                          std::size_t owners) {
  std::vector<std::pair<std::int64_t, std::string>> by_size;
  for (const auto& [name, tensor] : tensors) by_size.emplace_back(-tensor.numel(), name);
  std::sort(by_size.begin(), by_size.end());
  std::vector<std::int64_t> held(owners);
  std::map<std::string, std::size_t> owner_of;
  for (const auto& [negative_size, name] : by_size) {
    const auto least = std::min_element(held.begin(), held.end());
    *least -= negative_size;
    owner_of[name] = static_cast<std::size_t>(least - held.begin());
  }
  return owner_of;
}

at::Tensor differentiable(const at::Tensor& tensor) {
  at::Tensor leaf = tensor.detach();
  leaf.set_requires_grad(true);
  return leaf;
}

}  // namespace

// What one replica holds of one owner's tensors: all of them in one piece.
struct weight_shards::buffers {
  at::Tensor weights;
  at::Tensor gradients;
};

weight_shards::weight_shards(std::vector<decoder_weights*> replicas)
    : replicas_(std::move(replicas)), owners_(divide(replicas_.front()->all(), replicas_.size())) {
  const c10::NoGradGuard no_gradients;
  if (replicas_.size() > 1) {
    lay_out();
  } else {
    for (auto& [name, tensor] : replicas_.front()->all()) tensor = differentiable(tensor.clone());
  }
}

weight_shards::~weight_shards() = default;

void weight_shards::lay_out() {
  std::vector<std::int64_t> sizes(replicas_.size());
  std::map<std::string, std::int64_t> offsets;
  for (const auto& [name, tensor] : replicas_.front()->all()) {
    std::int64_t& size = sizes[owners_.at(name)];
    offsets[name] = size;
    size += place_of(tensor);
  }
  for (decoder_weights* const replica : replicas_) {
    std::vector<buffers>& of = buffers_.emplace_back();
    const auto options = replica->all().begin()->second.options().requires_grad(false);
    for (const std::int64_t size : sizes)
      of.push_back({at::zeros({size}, options), at::zeros({size}, options)});
    for (auto& [name, tensor] : replica->all()) {
      const buffers& whole = of[owners_.at(name)];
      const auto piece = [&, count = tensor.numel(), shape = tensor.sizes().vec(),
                          offset = offsets.at(name)](const at::Tensor& buffer) {
        return buffer.narrow(0, offset, count).view(shape);
      };
      const at::Tensor place = piece(whole.weights);
      place.copy_(tensor);
      tensor = differentiable(place);
      tensor.mutable_grad() = piece(whole.gradients);
    }
  }
}

std::size_t weight_shards::size() const { return replicas_.size(); }

std::size_t weight_shards::owner_of(const std::string& name) const { return owners_.at(name); }

at::Tensor& weight_shards::owned(const std::string& name) const {
  return replicas_[owner_of(name)]->all().at(name);
}

void weight_shards::collect_gradients() {
  const c10::NoGradGuard no_gradients;
  for (std::size_t owner = 0; owner < buffers_.size(); ++owner) {
    const at::Tensor& sum = buffers_[owner][owner].gradients;
    for (std::size_t from = 0; from < buffers_.size(); ++from) {
      if (from == owner) continue;
      for (std::int64_t begin = 0; begin < sum.numel(); begin += max_on_the_way) {
        const std::int64_t count = std::min(max_on_the_way, sum.numel() - begin);
        const at::Tensor part = buffers_[from][owner].gradients.narrow(0, begin, count);
        sum.narrow(0, begin, count).add_(part.to(sum.device()));
      }
    }
  }
}

void weight_shards::clear_gradients() {
  if (replicas_.size() == 1) {
    for (auto& [name, tensor] : replicas_.front()->all()) tensor.mutable_grad() = at::Tensor();
    return;
  }
  const c10::NoGradGuard no_gradients;
  for (auto& of_replica : buffers_) {
    for (buffers& whole : of_replica) whole.gradients.zero_();
  }
}

void weight_shards::spread_weights() {
  const c10::NoGradGuard no_gradients;
  for (std::size_t owner = 0; owner < buffers_.size(); ++owner) {
    for (std::size_t to = 0; to < buffers_.size(); ++to) {
      if (to != owner) buffers_[to][owner].weights.copy_(buffers_[owner][owner].weights);
    }
  }
}

}  // namespace hone
