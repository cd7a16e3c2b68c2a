#pragma once

#include <array>
#include <cstdint>

namespace hone {

// The head of an arena, written by the child and read by the parent, which believes none of it:
// every number is checked before use. A CPU's child is stopped while it is read.
struct arena_output {
  std::uint64_t
      offset;  // of element 0, from the arena's start; not_in_arena where it lies elsewhere
  std::uint32_t dtype;  // hone::dtype; unsupported_dtype for others
  std::uint32_t dimensions;
  std::array<std::int64_t, 12> sizes;
  std::array<std::int64_t, 12> strides;  // in elements
};

struct arena_allocation {
  std::uint64_t offset;
  std::uint64_t bytes;
};

inline constexpr std::uint64_t not_in_arena = ~std::uint64_t{0};
inline constexpr std::uint32_t unsupported_dtype = 255;
inline constexpr std::uint32_t max_arena_outputs = 4096;
inline constexpr std::uint32_t max_arena_allocations = 16384;
inline constexpr std::uint32_t max_calls = 512;

// A train of calls on a GPU: between two events on its stream, on the process's own clock until the
// device was done, and from the first start to the last end of whatever ran on any stream, and the
// part of that while anything ran (CUPTI; 0: not traced).
struct train_clock {
  double device_ns = 0;  // of the whole train, as the following
  double wall_ns = 0;
  double span_ns = 0;
  double busy_ns = 0;
  std::uint64_t calls = 1;
};

// One timed call on a GPU. What events say lies in memory that a program's kernels can write; what
// the host's clock says does not, unless the driver shares the host's memory with them.
struct call_clock {
  double event_ns = 0;   // between two events on its stream: what counts
  double host_ns = 0;    // from before the cache was flushed until the device had done all of it
  double launch_ns = 0;  // of that, what the host took to put the program itself on the stream
  double flush_ns = 0;   // one flush of the L2 cache before it, by events
};

// How a kernel of the artifact was launched last, for reports.
struct kernel_launch {
  std::uint32_t kernel;  // its number in the artifact
  std::uint32_t threads;
  std::uint64_t blocks;
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t blocks_a_multiprocessor;  // that fit at once
};
inline constexpr std::uint32_t max_kernel_launches = 64;

struct arena_head {
  std::uint32_t refused_call;  // number of a system call that the filter refused; 0: none
  std::uint32_t outputs_per_call;
  std::uint32_t output_count;
  std::uint32_t allocation_count;  // of this stage and run, as far as they fit
  std::uint64_t scratch_used;      // end of the memory that the run has been given so far
  std::array<arena_output, max_arena_outputs> outputs;
  std::array<arena_allocation, max_arena_allocations> allocations;
  std::array<call_clock, max_calls> call_clocks;  // GPU: of timed calls
  train_clock train;
  std::uint64_t flops;  // GPU: of a reference's last run, in products and convolutions
  std::uint32_t launch_count;
  std::array<kernel_launch, max_kernel_launches> launches;
};

inline constexpr std::uint64_t arena_head_bytes = 2U << 20U;
static_assert(sizeof(arena_head) <= arena_head_bytes);

// Between any two tensors in an arena, and at both its ends: bytes that nobody may write.
inline constexpr std::uint64_t guard_bytes = 256;
// Where a tensor may begin: CUDA's own allocations are aligned so, and wide loads and TMA
// descriptors count on 128 bytes.
inline constexpr std::uint64_t arena_alignment = 256;
// Memory that holds nothing yet: a NaN of every floating-point type, -1, and no valid bool.
inline constexpr unsigned char poison_byte = 0xff;
// The same for half of a GPU's runs: where the first is by chance what is expected, this is not
// (0.01 and 1.06 in floating point).
inline constexpr unsigned char other_poison_byte = 0x3c;

}  // namespace hone
