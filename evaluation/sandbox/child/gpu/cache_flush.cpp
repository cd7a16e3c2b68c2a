#include "evaluation/sandbox/child/gpu/cache_flush.hpp"

namespace hone {
namespace {

constexpr std::uint64_t times_the_cache = 4;

}  // namespace

cache_flush::~cache_flush() {
  if (buffer_ != nullptr) cudaFree(buffer_);
}

void cache_flush::make_room(std::uint64_t cache_bytes) {
  if (cache_bytes <= cache_bytes_) return;
  if (buffer_ != nullptr) cudaFree(buffer_);
  buffer_ = nullptr;
  cache_bytes_ = 0;
  C10_CUDA_CHECK(cudaMalloc(&buffer_, times_the_cache * cache_bytes));
  cache_bytes_ = cache_bytes;
}

void cache_flush::settle(cudaStream_t stream) {
  if (buffer_ != nullptr) C10_CUDA_CHECK(cudaMemsetAsync(buffer_, 0, cache_bytes_, stream));
}

void cache_flush::run(cudaStream_t stream, std::uint32_t times) {
  times_ = buffer_ != nullptr ? times : 0;
  before_.record(stream);
  for (std::uint32_t i = 0; i < times_; ++i)
    C10_CUDA_CHECK(
        cudaMemsetAsync(buffer_, static_cast<int>(i), times_the_cache * cache_bytes_, stream));
}

double cache_flush::each_ns(const timing_event& end) const {
  return times_ > 0 ? end.ns_since(before_) / times_ : 0;
}

}  // namespace hone
