#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "policy/sampling/gpu_layers.hpp"

namespace hone {

// The numbers that a step of decoding reads on the GPU, in one block of memory that is copied there
// at once, and those that it writes. The addresses stay, since CUDA graphs record them. Only for
// the .cpp files of this room, as it includes LibTorch.
class step_numbers {
 public:
  step_numbers(std::int64_t slots, std::int64_t parts, const at::Tensor& like)
      : slots_(static_cast<std::size_t>(slots)), parts_(static_cast<std::size_t>(parts)) {
    const auto size = static_cast<std::int64_t>(part_at() + parts_ * part_ints);
    host_ = at::zeros({size}, at::TensorOptions(at::kInt).pinned_memory(true));
    device_ = at::zeros({size}, like.options().dtype(at::kInt));
    drawn_host_ = at::zeros({2 * slots}, at::TensorOptions(at::kInt).pinned_memory(true));
    drawn_ = at::zeros({2 * slots}, like.options().dtype(at::kInt));
  }
  // Queues a copy of what was written to the host's side.
  void upload() const { device_.copy_(host_, /*non_blocking=*/true); }
  // Queues a copy of what was drawn: tokens, and from max_slots() on the bits of ln p.
  const at::Tensor& download() const {
    drawn_host_.copy_(drawn_, /*non_blocking=*/true);
    return drawn_host_;
  }

  // The host's side, by slot; members and parts are those of an attention_plan.
  int* tokens() { return host(0); }
  int* positions() { return host(slots_); }
  int* places() { return host(2 * slots_); }
  float* uniform() { return reinterpret_cast<float*>(host(3 * slots_)); }
  int* members() { return host(4 * slots_); }
  int* part_count() { return host(5 * slots_); }
  slot_parts* slots() { return reinterpret_cast<slot_parts*>(host(5 * slots_ + align)); }
  attention_part* parts() { return reinterpret_cast<attention_part*>(host(part_at())); }

  // The GPU's side.
  gpu_layers::token_rows device_rows() const {
    return {device(0), device(slots_), device(2 * slots_)};
  }
  const float* device_uniform() const { return reinterpret_cast<const float*>(device(3 * slots_)); }
  gpu_layers::device_plan device_plan(const at::Tensor& table) const {
    return {table.data_ptr<int>(), reinterpret_cast<const attention_part*>(device(part_at())),
            device(5 * slots_), reinterpret_cast<const slot_parts*>(device(5 * slots_ + align)),
            device(4 * slots_)};
  }
  int* device_drawn() const { return drawn_.data_ptr<int>(); }
  float* device_drawn_log() const {
    return reinterpret_cast<float*>(drawn_.data_ptr<int>() + slots_);
  }
  std::size_t max_slots() const { return slots_; }

 private:
  static constexpr std::size_t align = 8;
  static constexpr std::size_t slot_ints = sizeof(slot_parts) / sizeof(int);
  static constexpr std::size_t part_ints = sizeof(attention_part) / sizeof(int);
  std::size_t part_at() const {
    return (5 * slots_ + align + slots_ * slot_ints + align - 1) / align * align;
  }
  int* host(std::size_t at) { return host_.data_ptr<int>() + at; }
  const int* device(std::size_t at) const { return device_.data_ptr<int>() + at; }

  std::size_t slots_;
  std::size_t parts_;
  at::Tensor host_, device_;
  at::Tensor drawn_host_, drawn_;  // tokens, and the bits of ln p
};

}  // namespace hone
