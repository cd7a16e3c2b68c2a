#include "evaluation/sandbox/child/module/module_heap.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/arena.hpp"

namespace hone {
namespace {

// release() receives an address and nothing else.
module_heap* the_heap = nullptr;

// Returns the size of the class that `n` bytes belong to: eight classes between powers of two.
std::uint64_t class_of(std::uint64_t n) {
  const std::uint64_t step = std::max(arena_alignment, std::bit_floor(n) / 8);
  return (n + step - 1) / step * step;
}

}  // namespace

module_heap::module_heap(char* base, std::uint64_t begin, std::uint64_t end)
    : base_(base), end_(end), next_(arena_aligned(begin)), resident_end_(begin) {
  the_heap = this;
}

std::uint64_t module_heap::take(std::uint64_t size) {
  const std::lock_guard hold(lock_);
  std::uint64_t offset = next_;
  if (auto& known = free_[size]; !known.empty()) {
    offset = known.back();
    known.pop_back();
  } else {
    if (size > end_ - next_) throw std::bad_alloc();
    next_ += size;
    resident_end_ =
        make_resident(reinterpret_cast<std::byte*>(base_), resident_end_, std::min(next_, end_));
  }
  sizes_[offset] = size;
  return offset;
}

c10::DataPtr module_heap::allocate(std::size_t n) {
  // Without the gap, tensors of a power of two would compete for the same lines of a cache.
  void* data = n > 0 ? base_ + take(class_of(n) + guard_bytes) : nullptr;
  return {data, data, &release, c10::Device(c10::kCPU)};
}

void module_heap::release(void* data) {
  if (data == nullptr) return;
  module_heap& heap = *the_heap;
  const std::lock_guard hold(heap.lock_);
  const auto known = heap.sizes_.find(heap.offset_of(data));
  if (known == heap.sizes_.end()) return;
  heap.free_[known->second].push_back(known->first);
  heap.sizes_.erase(known);
}

}  // namespace hone
