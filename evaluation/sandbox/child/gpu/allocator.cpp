#include "evaluation/sandbox/child/gpu/allocator.hpp"

#include <c10/cuda/CUDAException.h>
#include <c10/util/Exception.h>

namespace hone {
namespace {

// Throws the error that LibTorch's own allocator throws, so that LibTorch's convolutions try an
// algorithm that needs less memory.
[[noreturn]] void out_of_memory() {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory");
  __builtin_unreachable();
}

}  // namespace

gpu_allocator::gpu_allocator()
    : CUDAPluggableAllocator(
          [this](std::size_t n, int, cudaStream_t) { return take(n); },
          [this](void* data, std::size_t, int, cudaStream_t) { give_back(data); }) {}

gpu_allocator& gpu_allocator::instance() {
  static const auto installed = [] {
    auto made = std::make_shared<gpu_allocator>();
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(made);
    return made;
  }();
  return *installed;
}

void gpu_allocator::attach(char* base, std::uint64_t bytes, arena_head& head) {
  base_ = base;
  bytes_ = bytes;
  head_ = &head;
  ledger_.attach(head);
}

void gpu_allocator::outside_of_the_arena(const std::function<void()>& work) {
  struct outside {
    explicit outside(bool& flag) : is_outside(&flag) { flag = true; }
    ~outside() { *is_outside = false; }
    outside(const outside&) = delete;
    outside& operator=(const outside&) = delete;
    bool* is_outside;
  };
  const outside here(is_outside_);
  work();
}

c10::DataPtr gpu_allocator::allocate(std::size_t n) {
  void* data = take(n);
  return {data, data, &release, c10::Device(c10::kCUDA, 0)};
}

void* gpu_allocator::take(std::size_t n) {
  if (n == 0) return nullptr;
  if (takes_from_arena()) {
    const auto offset = ledger_.take(n);
    if (!offset) out_of_memory();
    return base_ + *offset;
  }
  void* data = nullptr;
  if (cudaMalloc(&data, n) != cudaSuccess) {
    cudaGetLastError();
    out_of_memory();
  }
  return data;
}

void gpu_allocator::give_back(void* data) {
  if (data == nullptr) return;
  if (contains(data)) {
    ledger_.give_back(offset_of(data));
  } else {
    cudaFree(data);
  }
}

void gpu_allocator::cacheInfo(c10::DeviceIndex /*device*/, std::size_t* largest) {
  *largest = takes_from_arena() ? ledger_.left() : 1U << 30U;
}

}  // namespace hone
