#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

#include "evaluation/sandbox/child/common/arena_ledger.hpp"

namespace hone {

// Gives every CPU tensor of a run its place in the arena, where the parent reads outputs. Without a
// region it uses the heap. A block's context is its address, which is what raw_allocate (oneDNN's
// scratch memory) asks for. One a process, one thread. Includes LibTorch: for the child's sources
// only.
class arena_allocator final : public c10::Allocator {
 public:
  // The arena is mapped at `base`; allocations are noted in its head.
  void attach(char* base, std::uint64_t bytes);
  // Memory from `poisoned` on is poisoned as it is handed out for the first time. (0, 0, 0): use
  // the heap.
  void reset(std::uint64_t begin, std::uint64_t poisoned, std::uint64_t end);

  bool contains(const void* p) const { return p >= base_ && p < base_ + bytes_; }
  std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(p) - base_);
  }
  arena_head& head() const { return *reinterpret_cast<arena_head*>(base_); }

  c10::DataPtr allocate(std::size_t n) override;
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    default_copy_data(dest, src, count);
  }

 private:
  static void release(void* data);

  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t poisoned_ = 0;
  arena_ledger ledger_;
};

}  // namespace hone
