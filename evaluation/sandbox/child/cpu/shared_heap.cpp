#include "evaluation/sandbox/child/cpu/shared_heap.hpp"

namespace hone {
namespace {

constexpr std::uint64_t alignment = 64;

}  // namespace

// First fit: there are few blocks, and none is allocated while the clock runs.
void* shared_heap::allocate(std::size_t bytes) {
  const std::uint64_t size = (bytes + alignment - 1) / alignment * alignment;
  std::uint64_t begin = 0;
  for (const auto& [offset, length] : used_) {
    if (offset - begin >= size) break;
    begin = offset + length;
  }
  if (size > memory_.size() - begin) return nullptr;
  used_[begin] = size;
  memory_.make_resident(begin + size);
  return memory_.at(begin);
}

void shared_heap::release(void* data) {
  used_.erase(static_cast<std::uint64_t>(static_cast<std::byte*>(data) - memory_.at(0)));
}

}  // namespace hone
