#pragma once

#include <cstdint>
#include <string>

namespace hone {

// Takes from this process whatever a candidate must not have, for good: user id (where it is
// root's), core files, memory beyond `private_bytes`, and every system call that touches files,
// processes, sockets, signals or clocks' settings. Only the descriptor `socket` may be read and
// written. A refused call is noted in `refused_call`, then the process ends.
//
// While `artifact` is open, opening the path artifact_path() gives that one descriptor (dlopen
// needs a path); close_door() ends that. Throws std::system_error.
void confine(int socket, int artifact, std::uint64_t private_bytes, std::uint32_t* refused_call);
void close_door();
const char* artifact_path();

}  // namespace hone
