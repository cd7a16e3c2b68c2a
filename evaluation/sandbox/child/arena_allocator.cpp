#include "evaluation/sandbox/child/arena_allocator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hone {
namespace {

constexpr std::uint64_t alignment = 64;

std::uint64_t rounded(std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; }

}  // namespace

struct arena_allocator::block {
  arena_allocator* owner;
  std::uint64_t offset;
  std::uint64_t bytes;  // as asked for
  std::uint64_t epoch;
  void* heap;
};

void arena_allocator::attach(char* base, std::uint64_t bytes) {
  base_ = base;
  bytes_ = bytes;
}

void arena_allocator::reset(std::uint64_t begin, std::uint64_t poisoned, std::uint64_t end) {
  next_ = rounded(begin) + guard_bytes;
  poisoned_ = poisoned;
  end_ = end;
  ++epoch_;
  free_.clear();
  head().allocation_count = 0;
  head().scratch_used = next_;
}

c10::DataPtr arena_allocator::allocate(std::size_t n) {
  if (n == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
  if (base_ == nullptr || end_ == 0) {
    void* heap = std::aligned_alloc(alignment, rounded(n));
    if (heap == nullptr) throw std::bad_alloc();
    return {heap, new block{this, 0, 0, 0, heap}, &release, c10::Device(c10::kCPU)};
  }
  const std::uint64_t size = rounded(n);
  std::uint64_t offset = 0;
  if (auto reusable = free_.find(n); reusable != free_.end() && !reusable->second.empty()) {
    offset = reusable->second.back();
    reusable->second.pop_back();
  } else {
    if (size > end_ || next_ > end_ - size || end_ - size - next_ < guard_bytes) throw std::bad_alloc();
    offset = next_;
    next_ += size + guard_bytes;
    if (next_ > poisoned_) {
      std::memset(base_ + poisoned_, poison_byte, next_ - poisoned_);
      poisoned_ = next_;
    }
    arena_head& h = head();
    h.scratch_used = next_;
    if (h.allocation_count < max_arena_allocations) h.allocations[h.allocation_count++] = {offset, n};
  }
  return {base_ + offset, new block{this, offset, n, epoch_, nullptr}, &release, c10::Device(c10::kCPU)};
}

void arena_allocator::release(void* context) {
  if (context == nullptr) return;
  const auto* freed = static_cast<block*>(context);
  if (freed->heap != nullptr) {
    std::free(freed->heap);
  } else if (freed->epoch == freed->owner->epoch_) {
    freed->owner->free_[freed->bytes].push_back(freed->offset);
  }
  delete freed;
}

c10::DeleterFnPtr arena_allocator::raw_deleter() const { return nullptr; }

}  // namespace hone
