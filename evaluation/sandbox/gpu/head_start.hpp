#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "evaluation/sandbox/gpu/timing_event.hpp"

namespace hone {

// What the device does before a clocked call: it writes a buffer, which empties its L2 cache, while the host gets ahead of it. How often, the judge says
// (evaluation/judge/gpu/writes_ahead.hpp). For one stream; the thread that has the device's context.
class head_start {
 public:
  head_start() = default;
  ~head_start();
  head_start(const head_start&) = delete;
  head_start& operator=(const head_start&) = delete;

  // At least so much is written at a time.
  void make_room(std::uint64_t bytes);
  // Puts so many writings on the stream; none without room.
  void give(cudaStream_t stream, std::uint32_t times);
  // How long one of those took that ended with `end`, which the device has come by.
  double write_ns(const timing_event& end) const;

 private:
  void* buffer_ = nullptr;
  std::uint64_t bytes_ = 0;
  timing_event before_;
  std::uint32_t times_ = 0;
};

}  // namespace hone
