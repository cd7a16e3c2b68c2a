#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace hone {

// Limits of the process of a Python module.
struct module_limits {
  std::uint64_t address_space = RLIM_INFINITY;  // bytes
  std::uint64_t private_bytes = RLIM_INFINITY;  // writable memory, in addition to what it has
  std::uint64_t open_files = 64;                // modules that Python imports late
};

// Confines a process that will run a hostile Python module, irrevocably: it has no capabilities,
// opens no file for writing, starts and signals no process, sets no timer that signals it, and
// reaches no network. It has been started behind a read fence (process/read_fence.hpp).
// Throws std::runtime_error.
void confine_module(const module_limits& limits);

}  // namespace hone
