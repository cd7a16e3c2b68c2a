#pragma once

#include <chrono>

namespace hone {

// How long a sandbox process may take to start: enough to load LibTorch and CUDA's libraries from a
// cold disk.
inline constexpr auto start_limit = std::chrono::seconds(120);

// The failure of a process whose answer does not belong to the command.
inline constexpr const char* out_of_turn = "the process answered out of turn";

}  // namespace hone
