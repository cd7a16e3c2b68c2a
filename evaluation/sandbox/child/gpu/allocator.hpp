#pragma once

#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <functional>
#include <memory>

#include "evaluation/sandbox/child/common/arena_ledger.hpp"

namespace hone {

// Allocates every tensor on the GPU in the arena's device memory, which the parent owns and reads.
// Before there is an arena, and for memory that outlives all runs (the workspaces of libraries), it
// allocates from CUDA. A tensor may outlive the run that made it. Its memory may then belong to
// another tensor, which its release does not free. One per process, confined to one thread at a
// time.
class gpu_allocator final : public torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator {
 public:
  // Returns the allocator of the process. The first call makes it LibTorch's allocator, and must
  // come before LibTorch has allocated anything on a GPU.
  static gpu_allocator& instance();
  gpu_allocator();

  // Sets the arena: device memory mapped at `base`, and its head in host memory. Owns neither.
  void attach(char* base, std::uint64_t bytes, arena_head& head);
  arena_head& head() const { return *head_; }
  arena_ledger& ledger() { return ledger_; }
  char* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  bool contains(const void* p) const { return p >= base_ && p < base_ + bytes_; }
  std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(p) - base_);
  }

  // Does work whose new tensors have memory from CUDA itself, and none from the arena.
  void outside_of_the_arena(const std::function<void()>& work);
  // See arena_ledger::keep_freed(). Has no effect on work outside of the arena.
  void keep_freed() {
    if (!is_outside_) ledger_.keep_freed();
  }

  // Throws c10::OutOfMemoryError if there is no room.
  c10::DataPtr allocate(std::size_t n) override;
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void* raw_alloc(std::size_t n) override { return take(n); }
  void* raw_alloc_with_stream(std::size_t n, cudaStream_t /*stream*/) override { return take(n); }
  void raw_delete(void* data) override { give_back(data); }
  // Reports the largest block that can be allocated, by which libraries choose algorithms.
  void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override;
  std::string name() override { return "hone"; }

 private:
  static void release(void* data) { instance().give_back(data); }
  bool takes_from_arena() const { return !is_outside_ && ledger_.has_region(); }
  void* take(std::size_t n);
  void give_back(void* data);

  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  arena_head* head_ = nullptr;
  arena_ledger ledger_;
  bool is_outside_ = false;  // of the arena, for the time of outside_of_the_arena()
};

}  // namespace hone
