#pragma once

namespace hone {

// Serves commands (evaluation/sandbox/protocol.capnp) until the parent is gone, which throws
// connection_lost, or the GPU's context is lost, which ends the process. The first command must be
// `attach`. After it the process is confined to reading files and talking to the GPU.
void serve_gpu_sessions(int socket);

}  // namespace hone
