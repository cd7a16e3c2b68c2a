#pragma once

#include <array>
#include <cstdint>

namespace hone {

// A launch as it lies in the queue. One word per argument follows it.
struct queued_launch {
  std::uint32_t kernel;  // index
  std::uint32_t arguments;
  std::array<std::uint32_t, 3> grid;
  std::array<std::uint32_t, 3> block;
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t reserved;
};

// Memory that a session shares with the process of its kernels. The kernels may write to it, so the
// session believes nothing that it reads here.
struct kernel_queue {
  static constexpr std::size_t capacity = 1U << 16U;
  static constexpr std::size_t words_per_launch = sizeof(queued_launch) / sizeof(std::uint64_t);

  // Written by the session.
  std::uint64_t used;       // words
  std::uint8_t begins_run;  // 1: shared memory is poisoned first
  unsigned char poison;
  std::array<std::uint64_t, capacity> words;

  // Written by the kernels' process.
  std::uint32_t refused_call;  // as arena_head::refused_call
  std::uint32_t shared_overrun;
  std::array<char, 1024> problem;  // why a launch could not go on; empty if all could
};
static_assert(sizeof(queued_launch) % sizeof(std::uint64_t) == 0);

}  // namespace hone
