#include "evaluation/sandbox/child/cpu/arena_allocator.hpp"

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

void arena_allocator::reset(std::uint64_t begin, std::uint64_t poisoned, std::uint64_t end) {
  ledger_.reset(begin, end);
  poisoned_ = poisoned;
}

c10::DataPtr arena_allocator::allocate(std::size_t n) {
  the_allocator = this;
  void* data = nullptr;
  if (n > 0 && !ledger_.has_region()) {
    data = std::aligned_alloc(heap_alignment,
                              (n + heap_alignment - 1) / heap_alignment * heap_alignment);
    if (data == nullptr) throw std::bad_alloc();
  } else if (n > 0) {
    const auto offset = ledger_.take(n);
    if (!offset) throw std::bad_alloc();
    if (const std::uint64_t used = ledger_.end_of_used(); used > poisoned_) {
      std::memset(base_ + poisoned_, poison_byte, used - poisoned_);
      poisoned_ = used;
    }
    data = base_ + *offset;
  }
  return {data, data, &release, c10::Device(c10::kCPU)};
}

void arena_allocator::release(void* data) {
  if (data == nullptr) return;
  if (the_allocator->contains(data)) {
    the_allocator->ledger_.give_back(the_allocator->offset_of(data));
  } else {
    std::free(data);
  }
}

}  // namespace hone
