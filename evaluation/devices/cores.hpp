#pragma once

#include <vector>

#include "evaluation/sandbox/child_process.hpp"

namespace hone {

// Processor cores that belong to one device each, so that nothing else of Hone runs where times are
// taken. Throws std::runtime_error.

// The cores that this thread may use, lowest first.
std::vector<int> allowed_cores();
// Binds this thread, and what it starts later, to these cores.
void bind_thread(const std::vector<int>& cores);
// Every process of Hone on the machine that wants a core takes its lock, which goes with the
// process. Empty: another has it.
unique_fd lock_core(int core);

// Keeps this process (and what it starts later) off the cores that its devices reserve: call before
// threads are started. Returns the cores reserved for `devices` devices, highest first, of those
// that no other process of Hone has. Throws std::runtime_error where a machine has too few cores.
std::vector<int> reserve_cores(std::size_t devices, bool share_cores);
// The same for the core that a GPU's processes launch from. A kernel's launch takes half as long
// again while the core's other hyper-thread works, so those stay free as well. -1: there are too
// few cores to spare one.
int reserve_launching_core();

}  // namespace hone
