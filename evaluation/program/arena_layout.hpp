#pragma once

#include <array>
#include <cstdint>

#include "evaluation/program/clocks.hpp"

namespace hone {

// The byte layout of an arena's head. The sandbox process writes it and the judge reads it. The
// judge checks every number before use. While the judge reads the head of a CPU session's arena,
// the process is stopped.

// Describes one output of a call: its place in the arena, its type and its shape.
struct arena_output {
  // Bytes from the arena's start to element 0; not_in_arena if the output lies elsewhere.
  std::uint64_t offset;
  std::uint32_t dtype;  // hone::dtype, or unsupported_dtype
  std::uint32_t dimensions;
  std::array<std::int64_t, 12> sizes;
  std::array<std::int64_t, 12> strides;  // in elements
};

// A tensor's memory in an arena, in bytes from the arena's start.
struct arena_allocation {
  std::uint64_t offset;
  std::uint64_t bytes;
};

inline constexpr std::uint64_t not_in_arena = ~std::uint64_t{0};
inline constexpr std::uint32_t unsupported_dtype = 255;
inline constexpr std::uint32_t max_arena_outputs = 4096;
inline constexpr std::uint32_t max_arena_allocations = 16384;
inline constexpr std::uint32_t max_calls = 512;

// The most recent launch of one of the artifact's kernels, for reports.
struct kernel_launch {
  std::uint32_t kernel;  // index in the artifact
  std::uint32_t threads;
  std::uint64_t blocks;
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t blocks_per_multiprocessor;  // resident at once
};
inline constexpr std::uint32_t max_kernel_launches = 64;

struct arena_head {
  // 1 + number of the system call that the filter refused; 0 if it refused none.
  std::uint32_t refused_call;
  std::uint32_t outputs_per_call;
  std::uint32_t output_count;
  // Allocations of this stage and run. The array lists only the first max_arena_allocations.
  std::uint32_t allocation_count;
  std::uint64_t scratch_used;  // end of the scratch memory that has been handed out
  // Python modules on a GPU: the number of calls whose turn has come, which the judge writes, and
  // of those that have passed it back. Both sides spin, because waking a process takes longer than
  // many calls.
  std::uint32_t turns;
  std::uint32_t turns_taken;
  std::array<arena_output, max_arena_outputs> outputs;
  std::array<arena_allocation, max_arena_allocations> allocations;
  std::array<call_clock, max_calls> call_clocks;  // GPU only
  burst_clock burst;                              // GPU only
  // GPU only: floating-point operations of a reference's last run in matrix products and
  // convolutions.
  std::uint64_t flops;
  // Discontinuous results in the last study of a reference that rounding may change.
  std::uint64_t decisions;
  std::uint32_t launch_count;
  std::array<kernel_launch, max_kernel_launches> launches;
};

// Exit code of a CPU session whose system call was refused; arena_head::refused_call has its
// number.
inline constexpr int refused_call_exit_code = 159;

inline constexpr std::uint64_t arena_head_bytes = 2U << 20U;
static_assert(sizeof(arena_head) <= arena_head_bytes);

// In the arena of a Python module, inputs and parameters lie before this offset, and the tensors
// that the module allocates lie behind it.
inline constexpr std::uint64_t module_heap_begin = 1ULL << 30U;
inline constexpr std::uint64_t module_heap_bytes = 4ULL << 30U;

// Guard bytes between any two tensors in an arena, and at both its ends.
inline constexpr std::uint64_t guard_bytes = 256;
// Alignment of tensors: CUDA's own allocations have it, and wide loads and TMA descriptors rely on
// 128 bytes.
inline constexpr std::uint64_t arena_alignment = 256;
// Returns the next multiple of the alignment.
constexpr std::uint64_t arena_aligned(std::uint64_t n) {
  return (n + arena_alignment - 1) / arena_alignment * arena_alignment;
}
// The byte that poisoned memory holds: a NaN in every floating-point type, -1 in integers, no valid
// bool. Memory that no run has used holds it.
inline constexpr unsigned char poison_byte = 0xff;
// The byte of every second run on a GPU, for outputs that are expected to be NaN or -1. As a
// floating-point number it is 0.01 or 1.06.
inline constexpr unsigned char other_poison_byte = 0x3c;
// The bytes of a CPU session, in turn: a NaN, 0.01, -1.5 and 2e25 in float32. The guards of inputs
// and parameters hold one, scratch memory holds the next. A kernel that runs beyond the end of its
// tensors would have to turn each of them into the next to stay unseen.
inline constexpr std::array<unsigned char, 4> poison_bytes = {0xff, 0x3c, 0xbf, 0x69};
// Scratch memory behind the last tensor that must keep its poison as well.
inline constexpr std::uint64_t poisoned_tail_bytes = 1U << 20U;

}  // namespace hone
