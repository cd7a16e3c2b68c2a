#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "evaluation/sandbox/arena.hpp"

namespace hone {

// Memory for what outlives a run, as the results of prepare() do. A session's kernels read it as
// well, because it is mapped before their process is forked. Its pages are those of an arena, so
// that parameters are read as fast from here as from there. Confined to one thread of the session.
class shared_heap {
 public:
  // Reserves address space; pages exist once they are touched. Throws std::system_error.
  explicit shared_heap(std::uint64_t bytes) : memory_(bytes) {}

  // Returns null if there is no room.
  void* allocate(std::size_t bytes);
  void release(void* data);
  bool contains(const void* p) const {
    return p >= memory_.at(0) && p < memory_.at(memory_.size());
  }

 private:
  arena memory_;
  std::map<std::uint64_t, std::uint64_t> used_;  // sizes by offset
};

}  // namespace hone
