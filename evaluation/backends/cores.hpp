#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "process/unique_fd.hpp"

namespace hone {

// Other processes of Hone have reserved a GPU, or so many cores that too few are left.
class hardware_taken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reservation of processor cores and GPUs. What is reserved belongs to one device, so that no other
// part of Hone runs where times are taken. Functions throw std::runtime_error.

// Returns the cores that this thread may use, lowest first.
std::vector<int> allowed_cores();
// Binds this thread, and the threads and processes that it starts later, to these cores.
void bind_thread(const std::vector<int>& cores);
// Takes the machine-wide lock of a core. Every process of Hone must hold this lock while it
// reserves the core. Returns an empty descriptor if another process holds the lock. Closing the
// descriptor releases the lock.
unique_fd lock_core(int core);

// Does the same for a GPU, by its UUID: the numbers of GPUs differ from process to process.
unique_fd lock_gpu(const std::string& uuid);

// Chooses a core for each of `devices` CPU devices and keeps this process, and the threads and
// processes that it starts later, off these cores. Must be called before threads are started.
// Returns the cores, highest first, or -1 for each device if `share_cores`. Each device locks its
// core itself. Throws hardware_taken, or std::runtime_error if there are too few cores at all.
std::vector<int> reserve_cores(std::size_t devices, bool share_cores);
// Chooses the launch core of a GPU in the same way. This process is kept off the core's
// hyper-thread siblings as well, because a launch takes half as long again while one of them works.
// Returns -1 if there are too few cores to spare one.
int reserve_launch_core();

}  // namespace hone
