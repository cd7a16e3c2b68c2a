#pragma once

#include <sys/types.h>

#include <cstdint>

namespace hone {

// What /proc/PID/stat says of a process, see proc(5).
struct process_facts {
  char state = 'X';  // R, S, D, T (stopped), Z (ended, not yet collected) or X (there is none)
  pid_t parent = -1;
  int threads = 0;
  std::uint64_t start = 0;          // clock ticks after the machine's boot
  std::uint64_t address_space = 0;  // in bytes
};

// Returns the facts of a process; state X if there is no such process.
process_facts facts_of(pid_t pid);

}  // namespace hone
