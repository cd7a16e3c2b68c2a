#pragma once

#include <chrono>

#include "messages/names.hpp"

namespace hone {

// How long a sandbox process may take to start: enough to load LibTorch and CUDA's libraries from a
// cold disk.
inline constexpr auto start_limit = std::chrono::seconds(120);

// The failure of a process whose answer does not belong to the command.
inline constexpr const char* out_of_turn = "the process answered out of turn";

// The failure of a process whose answer is no message.
inline constexpr const char* nonsense = "the process wrote nonsense to its command socket";

// Returns true if a candidate that can write to its socket may report an outcome: its own crash,
// launch error or, while it is opened, compile error. Others would blame the machine.
inline bool may_report(Outcome outcome, bool is_open) {
  return outcome == Outcome::CRASH || outcome == Outcome::LAUNCH_ERROR ||
         (!is_open && outcome == Outcome::COMPILE_ERROR);
}

}  // namespace hone
