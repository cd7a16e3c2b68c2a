#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "evaluation/sandbox/gpu/timing_event.hpp"
#include "evaluation/sandbox/gpu/writes_ahead.hpp"

namespace hone {

// What the device does before a clocked call: it writes a buffer, which empties its L2 cache, while the host gets ahead of it. Once is enough for a call
// of a few launches. For one of many the buffer is written as often as the host was seen to need, for 0.4 ms at most: such a call would else be
// clocked by what the host does beside it (doc/decisions/012). For one stream; the thread that has the device's context.
class head_start {
 public:
  head_start() = default;
  ~head_start();
  head_start(const head_start&) = delete;
  head_start& operator=(const head_start&) = delete;

  // At least so much is written at a time.
  void make_room(std::uint64_t bytes);
  // Puts the writing on the stream: as often as the last calls needed it, or once. Nothing without room.
  void give(cudaStream_t stream) { write(stream, writes_ahead(host_.ns(), write_ns_)); }
  void give_least(cudaStream_t stream) { write(stream, 1); }
  // Of a call behind it that the device is done with: when its clock began, and how long the host took to put it on the stream.
  void learn(const timing_event& begin, double host_ns);
  // What was put before the last call, and how long one writing of it took.
  int writes() const { return times_; }
  double write_ns() const { return write_ns_; }
  // The next call is of another program.
  void forget() { host_ = {}; }

 private:
  void write(cudaStream_t stream, int times);

  void* buffer_ = nullptr;
  std::uint64_t bytes_ = 0;
  timing_event before_;
  int times_ = 1;        // written before the last call
  double write_ns_ = 0;  // one writing, as it was seen
  host_time host_;
};

}  // namespace hone
