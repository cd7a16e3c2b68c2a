#include "evaluation/sandbox/child/arena_allocator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hone {
namespace {

constexpr std::uint64_t alignment = 64;

std::uint64_t rounded(std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; }

arena_allocator* the_allocator = nullptr;  // release() is given an address and nothing else

}  // namespace

void arena_allocator::attach(char* base, std::uint64_t bytes) {
  the_allocator = this;
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

// Enters an allocation into the head's list; max_arena_allocations: it is full.
std::uint32_t arena_allocator::note(std::uint64_t offset, std::uint64_t bytes) const {
  arena_head& h = head();
  if (h.allocation_count >= max_arena_allocations) return max_arena_allocations;
  h.allocations[h.allocation_count] = {offset, bytes};
  return h.allocation_count++;
}

c10::DataPtr arena_allocator::allocate(std::size_t n) {
  the_allocator = this;
  if (n == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
  void* data = nullptr;
  if (base_ == nullptr || end_ == 0) {
    data = std::aligned_alloc(alignment, rounded(n));
    if (data == nullptr) throw std::bad_alloc();
    blocks_[data] = {0, 0, 0, true};
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  const std::uint64_t size = rounded(n);
  if (auto reusable = free_.find(size); reusable != free_.end() && !reusable->second.empty()) {
    const auto [offset, number] = reusable->second.back();
    reusable->second.pop_back();
    // The guard begins behind the largest tensor that has lain here: a bool's memory may be a float's next.
    if (number < max_arena_allocations) head().allocations[number].bytes = std::max<std::uint64_t>(head().allocations[number].bytes, n);
    data = base_ + offset;
    blocks_[data] = {size, epoch_, number, false};
  } else {
    if (size > end_ || next_ > end_ - size || end_ - size - next_ < guard_bytes) throw std::bad_alloc();
    const std::uint64_t offset = next_;
    next_ += size + guard_bytes;
    if (next_ > poisoned_) {
      std::memset(base_ + poisoned_, poison_byte, next_ - poisoned_);
      poisoned_ = next_;
    }
    head().scratch_used = next_;
    data = base_ + offset;
    blocks_[data] = {size, epoch_, note(offset, n), false};
  }
  return {data, data, &release, c10::Device(c10::kCPU)};
}

void arena_allocator::release(void* data) {
  if (data == nullptr) return;
  arena_allocator& owner = *the_allocator;
  const auto found = owner.blocks_.find(data);
  if (found == owner.blocks_.end()) return;
  const block freed = found->second;
  owner.blocks_.erase(found);
  if (freed.on_heap) {
    std::free(data);
  } else if (freed.epoch == owner.epoch_) {
    owner.free_[freed.size].emplace_back(owner.offset_of(data), freed.number);
  }
}

}  // namespace hone
