#pragma once

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

namespace hone {

// A point on a stream whose time can be read once the device has reached it. Functions throw
// c10::Error.
class timing_event {
 public:
  timing_event() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~timing_event() { cudaEventDestroy(event_); }
  timing_event(const timing_event&) = delete;
  timing_event& operator=(const timing_event&) = delete;
  void record(cudaStream_t stream) { C10_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  // Returns the nanoseconds from `earlier` to this event. The device must have reached both.
  double ns_since(const timing_event& earlier) const {
    float ms = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&ms, earlier.event_, event_));
    return static_cast<double>(ms) * 1e6;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace hone
