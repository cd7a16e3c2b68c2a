#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

#include "evaluation/sandbox/child/common/arena_ledger.hpp"
#include "evaluation/sandbox/child/cpu/shared_heap.hpp"

namespace hone {

// Allocates every CPU tensor of a run in the arena, where the parent reads outputs. Without a
// region it allocates on the heap. The context of a block is its address, as raw_allocate requires
// (oneDNN's scratch memory). One per process, confined to one thread. Includes LibTorch: only for
// sources of the sandbox programs.
class arena_allocator final : public c10::Allocator {
 public:
  // Sets the arena, which is mapped at `base`. Allocations are entered into its head.
  void attach(char* base, std::uint64_t bytes);
  // Sets the heap of a session with kernels, which must read what lies there; null: the process's
  // own.
  void attach_heap(shared_heap* heap) { heap_ = heap; }
  // Starts with a new region of scratch memory between the offsets `begin` and `end`. Memory from
  // `poisoned` on is filled with `poison` before it is handed out, as are the poisoned_tail_bytes
  // behind it. (0, 0, 0): allocate on the heap.
  void reset(std::uint64_t begin, std::uint64_t poisoned, std::uint64_t end,
             unsigned char poison = poison_byte);

  bool contains(const void* p) const { return p >= base_ && p < base_ + bytes_; }
  std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(p) - base_);
  }
  arena_head& head() const { return *reinterpret_cast<arena_head*>(base_); }

  // Throws std::bad_alloc if there is no room.
  c10::DataPtr allocate(std::size_t n) override;
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    default_copy_data(dest, src, count);
  }

 private:
  static void release(void* data);
  // Poisons the memory that is not poisoned yet, up to `used` and the tail behind it.
  void poison_up_to(std::uint64_t used);

  shared_heap* heap_ = nullptr;
  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t poisoned_ = 0;
  std::uint64_t end_ = 0;
  unsigned char poison_ = poison_byte;
  arena_ledger ledger_;
};

}  // namespace hone
