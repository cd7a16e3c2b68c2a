#pragma once

#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <vector>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {

// The streams of a call: the main stream, and the side streams that a host program selects with
// stream(k). Work on a side stream starts after the work that the main stream has been given so
// far. join() makes later work wait for all earlier work. Works while a graph is captured. Confined
// to one thread at a time. Functions throw c10::Error.
class call_streams {
 public:
  call_streams();
  cudaStream_t main() const { return streams_[0].stream(); }
  const std::vector<c10::cuda::CUDAStream>& all() const { return streams_; }

  // Begins a call, on the main stream.
  void begin();
  // Makes side stream k the current stream, or the main stream if k is 0.
  void use(std::int64_t k);
  void join();
  // Ends a call: the main stream waits for all side streams.
  void end();

 private:
  void fork(std::size_t k);
  std::vector<c10::cuda::CUDAStream> streams_;  // [0]: main
  std::vector<cudaEvent_t> events_;             // one per stream
  // True if the stream has work that the main stream does not wait for yet.
  std::array<bool, side_streams + 1> ahead_{};
  std::size_t current_ = 0;
};

}  // namespace hone
