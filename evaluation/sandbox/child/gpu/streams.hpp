#pragma once

#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <vector>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone {

// The streams of a call: the main one, and side streams that a host program goes to with stream(k).
// A side stream begins behind what the main stream has been given so far; join() puts everything in
// order again. Works while a graph is captured. One thread.
class call_streams {
 public:
  call_streams();
  cudaStream_t main() const { return streams_[0].stream(); }
  const std::vector<c10::cuda::CUDAStream>& all() const { return streams_; }

  void begin();  // a call: on the main stream
  void use(std::int64_t k);
  void join();
  void end();  // the main stream waits for all others

 private:
  void fork(std::size_t k);
  std::vector<c10::cuda::CUDAStream> streams_;  // [0]: main
  std::vector<cudaEvent_t> events_;             // one a stream
  std::array<bool, side_streams + 1> ahead_{};  // has work that the main stream does not wait for
  std::size_t current_ = 0;
};

}  // namespace hone
