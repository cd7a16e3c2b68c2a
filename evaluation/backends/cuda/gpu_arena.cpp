#include "evaluation/backends/cuda/gpu_arena.hpp"

namespace hone {

gpu_arena::gpu_arena(const gpu_context& gpu, std::uint64_t bytes)
    : memory_(gpu.allocate(bytes)), handle_(gpu.export_handle(memory_)) {
  poison(gpu, 0, bytes);
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
