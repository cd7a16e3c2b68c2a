#pragma once

#include <cstdint>

#include "evaluation/driver/cuda_driver.hpp"
#include "evaluation/sandbox/protocol.capnp.h"

namespace hone {

// The judge's own kernels in a candidate's process (evaluation/judge/gpu/judge_kernels.cuh): what
// has to happen between two calls, and behind the back of neither. One thread.
class judge_tools {
 public:
  // Loads them from the command; throws cuda_error.
  void load(const cuda_driver& driver, schema::Attach::Reader request);
  // No block finds zeros in shared memory, or what an earlier call or program left.
  void spoil_shared_memory(CUstream stream) const;
  // Makes memory readable that was made unreadable with this key.
  void make_readable(CUdeviceptr at, std::uint64_t bytes, std::uint64_t key, CUstream stream) const;

 private:
  const cuda_driver* driver_ = nullptr;
  CUfunction spoil_ = nullptr;
  CUfunction scramble_ = nullptr;
  unsigned shared_bytes_ = 0;
  unsigned multiprocessors_ = 1;
};

}  // namespace hone
