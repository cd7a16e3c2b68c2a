#pragma once

#include <cstdint>
#include <string>

namespace hone {

// The other side of evaluation/compile/cuda_on_cpu.cuh: what a compiled cuda block calls, and how
// it is called. The layouts must match that file.
namespace block_abi {

struct runtime {
  void (*block_barrier)(unsigned self);
  unsigned (*block_count)(unsigned self, unsigned predicate);
  const std::uint64_t* (*warp_gather)(unsigned self, unsigned mask, std::uint64_t value);
  void (*finish_block)(unsigned self);
  void (*fail)(const char* message);
};
struct parameter {
  unsigned kind, bytes;
};
struct kernel {
  const char* name;
  unsigned parameter_count;
  const parameter* parameters;
  void (*run)(void* const* arguments);
  void (*run_thread)(void* const* arguments, unsigned self);
};
struct size {
  unsigned x, y, z;
};
struct module {
  unsigned version;
  unsigned kernel_count;
  const kernel* kernels;
  void (*bind)(const runtime* r);
  void (*set_launch)(size grid, size block);
  char* dynamic_shared;
  unsigned dynamic_shared_bytes;
  void* (*static_shared)();
};

}  // namespace block_abi

// Runs a launch on this thread: the grid's blocks one after another, a block's threads in a loop
// until one of them reaches a barrier or a warp operation; from then on the block's threads are
// fibers (Boost.Context) that meet as CUDA's threads do. A thread that has returned counts as
// arrived. Threads that wait for each other in vain end the launch. Not reentrant.
class block_runtime {
 public:
  // Throws std::runtime_error with the reason when a block cannot go on.
  static void run(const block_abi::module& module, const block_abi::kernel& kernel,
                  block_abi::size grid, block_abi::size block, void* const* arguments);
  static const block_abi::runtime& interface();
};

}  // namespace hone
