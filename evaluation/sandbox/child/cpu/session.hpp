#pragma once

#include <cstdint>

namespace hone {

// Runs one session: confines this process, then serves open, stage and go on the socket until it
// closes. `arena` is the memory file to map, or -1 for a session that only checks programs.
// `private_bytes` limits the session's memory outside of the arena. Does not return.
[[noreturn]] void serve_session(int socket, int arena, std::uint64_t private_bytes);

}  // namespace hone
