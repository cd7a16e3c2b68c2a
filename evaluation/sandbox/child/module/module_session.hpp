#pragma once

#include <cstdint>
#include <functional>

#include "evaluation/sandbox/child/module/module_hooks.hpp"

namespace hone {

// Serves a session of a Python module on its socket until the socket closes, and then ends the
// process. The arena is -1 for a session that only loads programs. The process is confined before
// it receives a text; `address_space` limits its addresses in bytes.
[[noreturn]] void serve_module_session(const module_hooks& hooks, int socket, int arena,
                                       std::uint64_t address_space);

// Returns a function that makes a call of a module which returns its input, as a session makes
// calls. It shows what a call costs in addition to the module's work.
std::function<void()> trivial_module_call(const module_hooks& hooks);

}  // namespace hone
