#include "evaluation/sandbox/child/gpu/streams.hpp"

#include <c10/cuda/CUDAException.h>

namespace hone {

call_streams::call_streams() {
  for (std::int64_t k = 0; k <= side_streams; ++k) {
    streams_.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, 0));
    cudaEvent_t event = nullptr;
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    events_.push_back(event);
  }
  c10::cuda::setCurrentCUDAStream(streams_[0]);
}

void call_streams::begin() {
  ahead_.fill(false);
  current_ = 0;
  c10::cuda::setCurrentCUDAStream(streams_[0]);
}

void call_streams::fork(std::size_t k) {
  C10_CUDA_CHECK(cudaEventRecord(events_[0], main()));
  C10_CUDA_CHECK(cudaStreamWaitEvent(streams_[k].stream(), events_[0], 0));
  ahead_[k] = true;
}

void call_streams::use(std::int64_t k) {
  current_ = static_cast<std::size_t>(k);
  if (current_ > 0 && !ahead_[current_]) fork(current_);
  c10::cuda::setCurrentCUDAStream(streams_[current_]);
}

void call_streams::join() {
  for (std::size_t k = 1; k < streams_.size(); ++k) {
    if (!ahead_[k]) continue;
    C10_CUDA_CHECK(cudaEventRecord(events_[k], streams_[k].stream()));
    C10_CUDA_CHECK(cudaStreamWaitEvent(main(), events_[k], 0));
    ahead_[k] = false;
  }
  if (current_ > 0) fork(current_);
}

void call_streams::end() {
  current_ = 0;
  join();
  c10::cuda::setCurrentCUDAStream(streams_[0]);
}

}  // namespace hone
