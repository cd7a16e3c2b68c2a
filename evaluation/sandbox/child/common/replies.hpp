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

// What a session says to its parent, on every kind of device.

// Answers with a reply that `fill` completes.
void send_reply(int socket, const std::function<void(schema::Reply::Builder)>& fill);
// What opening programs has found, of which the first is the one that counts.
void send_opened(int socket, const torchscript_program& program);
// The failure that an exception out of a program means. `is_last`: the process ends with it.
void send_failure(int socket, const std::exception& why, bool is_last = false);

// A tensor at an address, laid out densely as the command says. Throws program_error where it
// would not fit into `room` bytes.
at::Tensor tensor_at(char* address, std::uint64_t room, schema::Layout::Reader layout, bool on_gpu);

// Enters a batch's outputs into the arena's head. `offset_of` gives a tensor's place in the arena,
// or not_in_arena.
void describe_outputs(arena_head& head, const std::vector<std::vector<at::Tensor>>& calls,
                      const std::function<std::uint64_t(const at::Tensor&)>& offset_of);

}  // namespace hone
