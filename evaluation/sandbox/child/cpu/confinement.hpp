#pragma once

#include <cstdint>
#include <string>

namespace hone {

// Takes from this process, irrevocably, everything that a candidate must not have: root's user id,
// core files, memory beyond `private_bytes`, and every system call that touches files, processes,
// sockets, signals or the settings of clocks. Only the descriptor `socket` may be written to,
// and only the process `child` (0: none) may be continued.
// A refused call ends the process with refused_call_exit_code, after 1 + its number was written to
// `refused_call` (unless that is null).
//
// While the descriptor `artifact` is open, opening the path artifact_path() returns a copy of it,
// because dlopen needs a path; close_door() closes the descriptor. Throws std::system_error.
void confine(int socket, int child, int artifact, std::uint64_t private_bytes,
             std::uint32_t* refused_call);
void close_door();
const char* artifact_path();

}  // namespace hone
