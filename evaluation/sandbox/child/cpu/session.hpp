#pragma once

#include <cstdint>

namespace hone {

// The body of one session: confines this process, then serves open, stage and go on the socket
// until it closes. `arena` is the memfd to map, or -1 for a session that only checks programs. Does
// not return.
[[noreturn]] void serve_session(int socket, int arena, std::uint64_t private_bytes);

}  // namespace hone
