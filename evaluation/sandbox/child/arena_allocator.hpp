#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "evaluation/sandbox/arena_layout.hpp"

namespace hone {

// Gives every CPU tensor of a run its place in the arena, guard bytes between any two, so that outputs lie where the parent
// reads them. Freed memory is handed out again for the same size; reset() makes all of the region new. Without a region it
// uses the heap. A block's context is its address, which is what raw_allocate (oneDNN's scratch memory) asks for. One a process,
// one thread. Includes LibTorch: for the child's sources only.
class arena_allocator final : public c10::Allocator {
 public:
  // The arena is mapped at `base`; allocations are noted in its head.
  void attach(char* base, std::uint64_t bytes);
  // Memory from `poisoned` on is poisoned as it is handed out for the first time. (0, 0, 0): use the heap.
  void reset(std::uint64_t begin, std::uint64_t poisoned, std::uint64_t end);

  bool contains(const void* p) const { return p >= base_ && p < base_ + bytes_; }
  std::uint64_t offset_of(const void* p) const { return static_cast<std::uint64_t>(static_cast<const char*>(p) - base_); }
  arena_head& head() const { return *reinterpret_cast<arena_head*>(base_); }

  c10::DataPtr allocate(std::size_t n) override;
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* dest, const void* src, std::size_t count) const override { default_copy_data(dest, src, count); }

 private:
  struct block {
    std::uint64_t size = 0;    // rounded up
    std::uint64_t epoch = 0;
    std::uint32_t number = 0;  // in the head's list of allocations
    bool on_heap = false;
  };
  static void release(void* data);
  std::uint32_t note(std::uint64_t offset, std::uint64_t bytes) const;

  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t poisoned_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t epoch_ = 0;  // counts resets: memory of an earlier epoch is not handed out again
  std::unordered_map<const void*, block> blocks_;                  // in use, by address
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint32_t>>> free_;  // size -> offsets and numbers
};

}  // namespace hone
