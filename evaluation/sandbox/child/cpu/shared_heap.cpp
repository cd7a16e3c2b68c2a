#include "evaluation/sandbox/child/cpu/shared_heap.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace hone {
namespace {

constexpr std::uint64_t alignment = 64;

}  // namespace

shared_heap::shared_heap(std::uint64_t bytes) : bytes_(bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "cannot reserve shared memory");
  base_ = static_cast<char*>(mapped);
}

shared_heap::~shared_heap() { munmap(base_, bytes_); }

// First fit: there are few blocks, and none is allocated while the clock runs.
void* shared_heap::allocate(std::size_t bytes) {
  const std::uint64_t size = (bytes + alignment - 1) / alignment * alignment;
  std::uint64_t begin = 0;
  for (const auto& [offset, length] : used_) {
    if (offset - begin >= size) break;
    begin = offset + length;
  }
  if (size > bytes_ - begin) return nullptr;
  used_[begin] = size;
  return base_ + begin;
}

void shared_heap::release(void* data) {
  used_.erase(static_cast<std::uint64_t>(static_cast<char*>(data) - base_));
}

}  // namespace hone
