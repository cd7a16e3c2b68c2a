#pragma once

#include <cstdint>

namespace hone {

// The memory of a process that forks one compilation after another. Pages are what costs time in a
// new fork: touching thousands that it shares with its parent takes as long as compiling.

// Freed memory stays in the heap, and the heap grows by much at a time: what a warm-up has touched
// is there for the block behind it, which then meets 60 new pages and not 1,000. Before the first
// large allocation.
void keep_memory();

// Takes copies of the pages that this process shares with its parent, the heap from `heap` on and
// every library's data, before it has anything to do: page by page, in the midst of compiling, that
// takes a quarter of the time.
void own_memory(const void* heap);

// Bytes of address space that this process has.
std::uint64_t address_space();

}  // namespace hone
