#pragma once

#include <cstdint>

namespace hone {

// A run of calls in a CPU session. Nanoseconds.
struct batch_clock {
  double device_ns = 0;  // the process's processor time: the clock that scores
  double wall_ns = 0;    // the parent's wall clock around the run
  // Processor time that the process used between its last run and this one. 0 if prepare() ran in
  // between.
  double outside_ns = 0;
};

// One timed call on a GPU. Kernels of the program can write the memory that holds event times. They
// cannot write the host's clock, unless the driver shares the host's memory with them.
struct call_clock {
  double event_ns = 0;   // between two events on the program's stream: the clock that scores
  double host_ns = 0;    // from before the first cache flush until the device has finished the call
  double launch_ns = 0;  // part of host_ns: how long the host took to launch the program itself
  double flush_ns = 0;   // one flush of the L2 cache before the call, by events
};

// A burst of calls on a GPU. Nanoseconds for the whole burst.
struct burst_clock {
  double device_ns = 0;  // between two events on the program's stream
  double wall_ns = 0;    // the process's own clock until the device was done
  double span_ns = 0;    // by CUPTI, from the first start to the last end on any stream; 0: untraced
  double busy_ns = 0;    // part of span_ns during which any kernel ran; 0: untraced
  std::uint64_t calls = 1;
};

}  // namespace hone
