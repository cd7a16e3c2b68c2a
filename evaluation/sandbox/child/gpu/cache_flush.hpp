#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "evaluation/sandbox/child/gpu/timing_event.hpp"

namespace hone {

// What the device does before a clocked call: it writes a buffer of four times its L2 cache, which
// empties that, while the host gets ahead of it. How often, the judge says
// (evaluation/judge/gpu/flushes_ahead.hpp). For one stream; the thread that has the device's
// context.
class cache_flush {
 public:
  cache_flush() = default;
  ~cache_flush();
  cache_flush(const cache_flush&) = delete;
  cache_flush& operator=(const cache_flush&) = delete;

  // For a cache of at least so many bytes.
  void make_room(std::uint64_t cache_bytes);
  // Fills the cache once with what must be written back, whatever was in it: the flush behind it
  // then takes as long after one program as after another.
  void settle(cudaStream_t stream);
  // Puts so many flushes on the stream; none without room.
  void run(cudaStream_t stream, std::uint32_t times);
  // How long one of those took that ended with `end`, which the device has come by.
  double each_ns(const timing_event& end) const;

 private:
  void* buffer_ = nullptr;
  std::uint64_t cache_bytes_ = 0;
  timing_event before_;
  std::uint32_t times_ = 0;
};

}  // namespace hone
