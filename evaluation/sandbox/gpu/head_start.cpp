#include "evaluation/sandbox/gpu/head_start.hpp"

namespace hone {

head_start::~head_start() {
  if (buffer_ != nullptr) cudaFree(buffer_);
}

void head_start::make_room(std::uint64_t bytes) {
  if (bytes <= bytes_) return;
  if (buffer_ != nullptr) cudaFree(buffer_);
  buffer_ = nullptr;
  bytes_ = 0;
  C10_CUDA_CHECK(cudaMalloc(&buffer_, bytes));
  bytes_ = bytes;
}

void head_start::give(cudaStream_t stream, std::uint32_t times) {
  times_ = buffer_ != nullptr ? times : 0;
  before_.record(stream);
  for (std::uint32_t i = 0; i < times_; ++i) C10_CUDA_CHECK(cudaMemsetAsync(buffer_, static_cast<int>(i), bytes_, stream));
}

double head_start::write_ns(const timing_event& end) const { return times_ > 0 ? end.ns_since(before_) / times_ : 0; }

}  // namespace hone
