#pragma once

#include <functional>

#include "cuda/cuda_driver.hpp"

namespace hone {

// Work of a stream, recorded once as a CUDA graph and queued as often as asked, with one call
// instead of hundreds. The work reads and writes the memory that it named when it was recorded.
// Confined to one thread.
class captured_work {
 public:
  // Records what `work` queues on `stream`, without running it. `work` must not allocate memory,
  // wait for the GPU, or use another stream. Throws cuda_error.
  captured_work(CUstream stream, const std::function<void()>& work);
  captured_work(const captured_work&) = delete;
  captured_work& operator=(const captured_work&) = delete;
  ~captured_work();

  // Queues the work on the stream. Throws cuda_error.
  void queue() const;

 private:
  const cuda_driver& driver_;
  CUstream stream_;
  CUgraphExec graph_ = nullptr;
};

}  // namespace hone
