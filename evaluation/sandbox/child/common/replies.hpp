#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/protocol.capnp.h"

namespace at {
class Tensor;
}

namespace hone {

class torchscript_program;

// Replies of a session to its parent, the same on every kind of device. Functions that send throw
// connection_lost.

// Sends a reply that `fill` completes.
void send_reply(int socket, const std::function<void(schema::Reply::Builder)>& fill);
// Sends the reply to `open`, with the facts about `program`, which is the first of the programs.
// `kernel_process`: the process that runs kernels for a session on a CPU; 0: none.
void send_opened(int socket, const torchscript_program& program, int kernel_process = 0);
// Sends the failure that an exception of a program represents. `is_last`: the process ends after
// it.
void send_failure(int socket, const std::exception& why, bool is_last = false);

// Returns a tensor of the layout, dense, at `address`; it does not own the memory. Throws
// program_error (infrastructure) if the tensor does not fit into `room` bytes.
at::Tensor tensor_at(char* address, std::uint64_t room, schema::Layout::Reader layout, bool on_gpu);

// Enters the outputs of a call into the arena's head, after those of the run's earlier calls.
// `offset_of` returns the offset of a tensor in the arena, or not_in_arena. The number of outputs
// of the first call is that of every call.
void describe_call(arena_head& head, const std::vector<at::Tensor>& outputs,
                   const std::function<std::uint64_t(const at::Tensor&)>& offset_of);
// Enters the outputs of a run into the arena's head, by call.
void describe_outputs(arena_head& head, const std::vector<std::vector<at::Tensor>>& calls,
                      const std::function<std::uint64_t(const at::Tensor&)>& offset_of);

}  // namespace hone
