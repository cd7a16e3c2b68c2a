#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "evaluation/sandbox/child/gpu/timing_event.hpp"

namespace hone {

// Work of the device before a timed call: it writes a buffer of four times its L2 cache, which
// empties the cache, while the host gets ahead of the device. session.cpp runs it before each timed
// call; evaluation/backends/cuda/head_start.hpp decides on the number of flushes. Used on one
// stream, by the thread that has the device's context.
class cache_flush {
 public:
  cache_flush() = default;
  ~cache_flush();
  cache_flush(const cache_flush&) = delete;
  cache_flush& operator=(const cache_flush&) = delete;

  // Allocates the buffer for a cache of at least `cache_bytes`. Throws c10::Error.
  void make_room(std::uint64_t cache_bytes);
  // Fills the cache once with data that must be written back, regardless of its earlier contents.
  // The flush that follows then takes the same time after every program.
  void settle(cudaStream_t stream);
  // Puts `times` flushes on the stream, or none if there is no buffer.
  void run(cudaStream_t stream, std::uint32_t times);
  // Returns the mean time of the last run's flushes, in ns. `end` is the event after them, which
  // the device must have reached.
  double each_ns(const timing_event& end) const;

 private:
  void* buffer_ = nullptr;
  std::uint64_t cache_bytes_ = 0;
  timing_event before_;
  std::uint32_t times_ = 0;
};

}  // namespace hone
