#include "evaluation/backends/cuda/gpu_arena.hpp"

namespace hone {
namespace {

// Another process maps exported memory in pages of this size only if the memory's size is a
// multiple of it. In smaller pages, a kernel that reads and writes 2 GiB takes 1.6 times as long,
// because its translations do not fit the TLB.
constexpr std::uint64_t large_page = 2ULL << 20U;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + large_page - 1) / large_page * large_page;
}

}  // namespace

gpu_arena::gpu_arena(const gpu_context& gpu, std::uint64_t bytes)
    : memory_(gpu.allocate(whole_pages(bytes))), handle_(gpu.export_handle(memory_)) {
  poison(gpu, 0, size());
  gpu.finish();
}

void gpu_arena::poison(const gpu_context& gpu, std::uint64_t begin, std::uint64_t end,
                       unsigned char with) const {
  if (end > begin) gpu.fill(at(begin), with, end - begin);
}

void gpu_arena::poison_used(const gpu_context& gpu) {
  poison(gpu, dirty_begin_, dirty_end_);
  dirty_begin_ = dirty_end_ = 0;
}

void gpu_arena::poison_all(const gpu_context& gpu) {
  poison(gpu, 0, size());
  dirty_begin_ = dirty_end_ = 0;
}

}  // namespace hone
