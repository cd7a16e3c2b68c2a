#pragma once

#include <cstdint>

namespace hone {

// Times of a run of calls in a CPU session, in nanoseconds.
struct batch_clock {
  double device_ns = 0;  // processor time of the process: the clock that scores
  double wall_ns = 0;    // the parent's wall clock around the run
  // Processor time that the process used between its last run and this one; 0 if prepare() ran in
  // between.
  double outside_ns = 0;
};

// Times of one call on a GPU, in nanoseconds. Kernels of the program can write the memory that
// holds event times. They cannot write the host's clock, unless the driver shares the host's memory
// with them.
struct call_clock {
  double event_ns = 0;  // between two events on the program's stream: the clock that scores
  // From before the first cache flush until the device has finished the call.
  double host_ns = 0;
  double launch_ns = 0;  // part of host_ns: the host launches the program itself
  double flush_ns = 0;   // one flush of the L2 cache before the call, by events
};

// Times of a burst of calls on a GPU, in nanoseconds for the whole burst.
struct burst_clock {
  double device_ns = 0;  // between two events on the program's stream
  double wall_ns = 0;    // the process's own clock, until the device was done
  // By CUPTI, from the first start to the last end on any stream; 0 if the burst was not traced.
  double span_ns = 0;
  // Part of span_ns during which any kernel ran; 0 if the burst was not traced.
  double busy_ns = 0;
  std::uint64_t calls = 1;
};

}  // namespace hone
