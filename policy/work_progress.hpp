#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace hone {

// Counts the steps of a policy's work on a GPU (micro-batches, sampled tokens, loaded tensors), so
// that a judge that waits for the GPU can tell long work from work that hangs.
using progress_counter = std::atomic<std::uint64_t>;

// Returns the counter of this process for a device ("cuda:0"). It lives as long as the process.
// Thread-safe.
progress_counter& progress_on(const std::string& device);

// Returns the counter of all of this process's work, on any device. Thread-safe.
progress_counter& progress_of_process();

// While it lives, note_progress() on this thread counts for the device.
class counted_work {
 public:
  explicit counted_work(const std::string& device);
  ~counted_work();
  counted_work(const counted_work&) = delete;
  counted_work& operator=(const counted_work&) = delete;

 private:
  progress_counter* before_;
};

// Counts a step of the work of this thread, for the process and, within counted_work, for a device.
void note_progress();

}  // namespace hone
