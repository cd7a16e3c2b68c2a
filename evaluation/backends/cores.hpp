#pragma once

#include <cstddef>
#include <vector>

#include "process/unique_fd.hpp"

namespace hone {

// Processor cores that belong to one device each, so that no other part of Hone runs where times
// are taken. Functions throw std::runtime_error.

// Returns the cores that this thread may use, lowest first.
std::vector<int> allowed_cores();
// Binds this thread, and the threads and processes that it starts later, to these cores.
void bind_thread(const std::vector<int>& cores);
// Takes the machine-wide lock of a core, which every process of Hone that reserves the core must
// hold. Returns an empty descriptor if another process holds it. The lock ends with the descriptor.
unique_fd lock_core(int core);

// Reserves a core for each of `devices` CPU devices and keeps this process, and what it starts
// later, off those cores. Must be called before threads are started. Returns the cores, highest
// first; -1 for each device if `share_cores`. Throws std::runtime_error if too few cores are free.
std::vector<int> reserve_cores(std::size_t devices, bool share_cores);
// Reserves the launch core of a GPU in the same way. Its hyper-thread siblings stay free as well,
// since a launch takes half as long again while one of them works. Returns -1 if there are too few
// cores to spare one.
int reserve_launch_core();

}  // namespace hone
