#pragma once

namespace hone {

// Answers commands (evaluation/sandbox/protocol.capnp) until the parent is gone or the GPU's
// context is lost. The first must be `attach`; behind it the process is confined to reading files
// and talking to the GPU.
void serve_gpu_sessions(int socket);

}  // namespace hone
