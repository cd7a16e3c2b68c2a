#include "evaluation/sandbox/child/cpu/arena_allocator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hone {
namespace {

constexpr std::size_t heap_alignment = 64;

// release() receives an address and nothing else.
arena_allocator* the_allocator = nullptr;

}  // namespace

void arena_allocator::attach(char* base, std::uint64_t bytes) {
  the_allocator = this;
  base_ = base;
  bytes_ = bytes;
  ledger_.attach(head());
}

void arena_allocator::reset(std::uint64_t begin, std::uint64_t poisoned, std::uint64_t end,
                            unsigned char poison) {
  ledger_.reset(begin, end);
  poisoned_ = poisoned;
  end_ = end;
  poison_ = poison;
  if (end > 0) poison_up_to(ledger_.end_of_used());
}

void arena_allocator::poison_up_to(std::uint64_t used) {
  const std::uint64_t end = std::min(used + poisoned_tail_bytes, end_);
  if (end <= poisoned_) return;
  std::memset(base_ + poisoned_, poison_, end - poisoned_);
  poisoned_ = end;
}

c10::DataPtr arena_allocator::allocate(std::size_t n) {
  the_allocator = this;
  void* data = nullptr;
  if (n > 0 && !ledger_.has_region()) {
    data = heap_ != nullptr
               ? heap_->allocate(n)
               : std::aligned_alloc(heap_alignment,
                                    (n + heap_alignment - 1) / heap_alignment * heap_alignment);
    if (data == nullptr) throw std::bad_alloc();
  } else if (n > 0) {
    const auto offset = ledger_.take(n);
    if (!offset) throw std::bad_alloc();
    poison_up_to(ledger_.end_of_used());
    data = base_ + *offset;
  }
  return {data, data, &release, c10::Device(c10::kCPU)};
}

void arena_allocator::release(void* data) {
  if (data == nullptr) return;
  if (the_allocator->contains(data)) {
    the_allocator->ledger_.give_back(the_allocator->offset_of(data));
  } else if (the_allocator->heap_ != nullptr && the_allocator->heap_->contains(data)) {
    the_allocator->heap_->release(data);
  } else {
    std::free(data);
  }
}

}  // namespace hone
