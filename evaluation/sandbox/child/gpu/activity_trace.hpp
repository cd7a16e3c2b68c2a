#pragma once

#include <cstdint>

namespace hone {

// Records when the GPU works for this process, on any stream, by CUPTI's clock: the third clock for
// a burst of calls. CUPTI is loaded at run time. If it is missing, or if this process may not use
// it, the trace is empty. Confined to one thread; one per process.
class activity_trace {
 public:
  struct result {
    double span_ns = 0;  // from the first start to the last end; 0 if nothing was recorded
    double busy_ns = 0;  // the part of span_ns during which anything ran
  };

  activity_trace();
  // Returns true if CUPTI can be used.
  bool works() const { return works_; }
  // Starts recording. The first work after it takes longer than usual, so begin() follows later.
  void start();
  // Counts only work that starts from now on, except a memory fill that precedes everything else:
  // the host uses that fill to get ahead of the device.
  void begin();
  // Stops recording and returns the times. The device must be idle.
  result stop();

 private:
  bool works_ = false;
  std::uint64_t begin_ns_ = 0;
};

}  // namespace hone
