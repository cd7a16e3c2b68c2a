#pragma once

#include <cstdint>

namespace hone {

// The memory of a process that forks one compilation after another. A new fork pays for pages:
// touching thousands of pages that it shares with its parent takes as long as compiling.

// Makes freed memory stay in the heap, and the heap grow in large steps. Memory that a warm-up has
// touched is then there for the block behind it, which meets 60 new pages instead of 1,000. Must be
// called before the first large allocation.
void keep_memory();

// Copies the pages that this process shares with its parent, the heap from `heap` on and every
// library's data, before there is work: page by page, during a compilation, that takes a quarter of
// its time.
void own_memory(const void* heap);

// Returns the bytes of address space that this process has.
std::uint64_t address_space();

}  // namespace hone
