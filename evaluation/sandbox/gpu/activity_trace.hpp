#pragma once

#include <cstdint>

namespace hone {

// When the GPU worked for this process, on whatever stream, by CUPTI's clock: the third opinion on a train of calls. Loaded at run
// time; where there is no CUPTI, or it may not look, it sees nothing. One thread, one a process.
class activity_trace {
 public:
  struct span {
    std::uint64_t first_start_ns = 0;
    std::uint64_t last_end_ns = 0;
    std::uint64_t activities = 0;  // kernels, copies, fills
    double ns() const { return activities > 0 ? static_cast<double>(last_end_ns - first_start_ns) : 0; }
  };

  activity_trace();
  bool works() const { return works_; }
  void start();
  // All that ran since start(); the device must be idle.
  span stop();

 private:
  bool works_ = false;
};

}  // namespace hone
