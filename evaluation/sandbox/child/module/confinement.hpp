#pragma once

#include <cstdint>

namespace hone {

// Confines a process that will run a hostile Python module, irrevocably: it has no capabilities,
// opens no file for writing, starts and signals no process, sets no timer that signals it, and
// reaches no network. It has been started behind a read fence (process/read_fence.hpp).
// `address_space` limits its addresses in bytes. Throws std::runtime_error.
void confine_module(std::uint64_t address_space);

}  // namespace hone
