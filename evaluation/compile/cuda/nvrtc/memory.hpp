#pragma once

#include <cstdint>

namespace hone {

// Memory of a process that forks one compilation after another. A new fork pays for pages: writing
// thousands of pages that it shares with its parent takes as long as compiling.

// Makes freed memory stay in the heap, and makes the heap grow in large steps. The memory that a
// warm-up has written is then ready for the block that follows, which meets 60 new pages instead of
// 1,000. Must be called before the first large allocation.
void keep_memory();

// Copies the pages that this process shares with its parent, before there is work: the heap from
// `heap` on, and the data of every library. If they were copied page by page during a compilation,
// the copies would take a quarter of its time.
void own_memory(const void* heap);

// Returns the bytes of address space that this process has.
std::uint64_t address_space();

}  // namespace hone
