#pragma once

#include <cstddef>
#include <map>
#include <memory>
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

// Reservation of processor cores and GPUs. A reserved one belongs to a single device, so no other
// part of Hone runs where times are taken. Functions throw std::runtime_error.

// Returns the cores that this thread may use, lowest first.
std::vector<int> allowed_cores();
// Binds this thread, and the threads and processes that it starts later, to these cores.
void bind_thread(const std::vector<int>& cores);
// Takes the machine-wide lock of a core, which a device holds as long as it lives. Returns an empty
// descriptor if another device holds it. Closing the descriptor releases the lock.
unique_fd lock_core(int core);
// Does the same for a GPU, by its UUID: the numbers of GPUs differ from process to process.
unique_fd lock_gpu(const std::string& uuid);

// The lock of a core or a GPU for a device that is still to be made. That device takes it over, and
// one that replaces it finds it empty.
using early_lock = std::shared_ptr<unique_fd>;

struct reserved_core {
  int number = -1;  // -1: any core
  early_lock lock{};
  // Returns the core's lock: the one that is kept for the caller, or else a new one, which is empty
  // if another device holds it.
  unique_fd take_lock() const;
};
// Returns the lock of a GPU in the same way.
unique_fd take_gpu_lock(const early_lock& kept, const std::string& uuid);

// Chooses and locks a core for each of `devices` CPU devices and keeps this process, and the
// threads and processes that it starts later, off these cores. Must be called before threads are
// started. Returns the cores, highest first. With `share_cores`, returns any core for each device
// and only keeps this process off the cores that other devices have reserved, unless these are all.
// Throws hardware_taken, or std::runtime_error if there are too few cores at all.
std::vector<reserved_core> reserve_cores(std::size_t devices, bool share_cores);
// Chooses and locks the launch core of a GPU in the same way. This process is kept off the core's
// hyper-thread siblings as well, because a launch takes half as long again while one of them works.
// Returns any core if there are too few to spare one.
reserved_core reserve_launch_core();
// Locks GPUs. Returns the locks by UUID. Throws hardware_taken, whose message begins with the GPU's
// name; `names`: by UUID.
std::map<std::string, early_lock> reserve_gpus(const std::map<std::string, std::string>& names);

}  // namespace hone
