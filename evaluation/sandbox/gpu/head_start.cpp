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
  write_ns_ = 0;
  C10_CUDA_CHECK(cudaMalloc(&buffer_, bytes));
  bytes_ = bytes;
}

void head_start::write(cudaStream_t stream, int times) {
  before_.record(stream);
  if (buffer_ == nullptr) return;
  times_ = times;
  for (int i = 0; i < times_; ++i) C10_CUDA_CHECK(cudaMemsetAsync(buffer_, i, bytes_, stream));
}

void head_start::learn(const timing_event& begin, double host_ns) {
  if (buffer_ != nullptr) write_ns_ = begin.ns_since(before_) / times_;
  host_.see(host_ns);
}

}  // namespace hone
