#pragma once

#include <cstdint>

#include "cuda/cuda_driver.hpp"
#include "evaluation/sandbox/protocol.capnp.h"

namespace hone {

// The judge's own kernels in a candidate's process (evaluation/backends/cuda/judge_kernels/), for
// the work that must happen between two calls. Confined to one thread at a time. Functions throw
// cuda_error.
class judge_tools {
 public:
  // Loads the kernels from the command. `driver` must outlive this object.
  void load(const cuda_driver& driver, schema::Attach::Reader request);
  // Fills shared memory with poison, so that no block finds zeros there, or data of an earlier call
  // or program.
  void spoil_shared_memory(CUstream stream) const;
  // Makes memory readable that the judge has made unreadable with `key`.
  void make_readable(CUdeviceptr at, std::uint64_t bytes, std::uint64_t key, CUstream stream) const;

 private:
  const cuda_driver* driver_ = nullptr;
  CUfunction spoil_ = nullptr;
  CUfunction scramble_ = nullptr;
  unsigned shared_bytes_ = 0;
  unsigned multiprocessors_ = 1;
};

}  // namespace hone
