#pragma once

#include <cstdint>
#include <string>

namespace hone {

// The binary interface between the sandbox and a compiled cuda block. The layouts must match
// thread_blocks.cuh and launch.cuh in evaluation/compile/cpu/cuda_on_cpu/, which describe the
// members.
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

// Runs launches on the calling thread: the blocks of a grid one after another, and the threads of a
// block in a loop until one of them reaches a barrier or a warp operation. From then on the threads
// of the block are fibers (Boost.Context) that wait for each other as CUDA's threads do. A thread
// that has returned counts as arrived at every barrier. A deadlock ends the launch. Not reentrant.
class block_runtime {
 public:
  // Runs one launch. `arguments` holds the address of each argument. Throws std::runtime_error with
  // the reason if a block cannot go on.
  static void run(const block_abi::module& module, const block_abi::kernel& kernel,
                  block_abi::size grid, block_abi::size block, void* const* arguments);
  // Returns the functions that a compiled block calls.
  static const block_abi::runtime& interface();
};

}  // namespace hone
