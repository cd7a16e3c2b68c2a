#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "evaluation/backends/cuda/gpu_context.hpp"
#include "evaluation/sandbox/client/gpu_process.hpp"

namespace hone {

// An arena in GPU memory, which the judge shares with one process at a time by CUDA IPC, and its
// head in host memory. The judge owns the arena, so it outlives every process. Offsets and sizes
// are in bytes. Poisoning is ordered on the judge's stream; functions that poison throw cuda_error.
// Confined to one thread.
class gpu_arena {
 public:
  // Holds at least `bytes`. Throws cuda_error.
  gpu_arena(const gpu_context& gpu, std::uint64_t bytes);

  CUdeviceptr at(std::uint64_t offset) const { return memory_.at() + offset; }
  std::uint64_t size() const { return memory_.bytes(); }
  arena_head& head() const { return *head_; }
  int head_descriptor() const { return head_.descriptor(); }
  // Returns the CUipcMemHandle, as bytes.
  const std::string& handle() const { return handle_; }

  // Poisons the range that is known to have been used since it was last poisoned.
  void poison_used(const gpu_context& gpu);
  // Poisons the whole arena. A program may have written anywhere, and the next program must neither
  // find these contents nor be blamed for them.
  void poison_all(const gpu_context& gpu);
  // Poisons a range with either pattern. Does not change the range that is known to be in use.
  void poison(const gpu_context& gpu, std::uint64_t begin, std::uint64_t end,
              unsigned char with = poison_byte) const;
  // Set the used range to begin at `begin` and to be empty, or extend it up to `end`.
  void use_from(std::uint64_t begin) { dirty_begin_ = dirty_end_ = begin; }
  void note_use(std::uint64_t end) { dirty_end_ = std::max(dirty_end_, std::min(end, size())); }
  std::uint64_t dirty_end() const { return dirty_end_; }

 private:
  gpu_memory memory_;
  shared_head head_;
  std::string handle_;
  // The range that is known to be in use. All memory outside of it holds poison.
  std::uint64_t dirty_begin_ = 0;
  std::uint64_t dirty_end_ = 0;
};

}  // namespace hone
