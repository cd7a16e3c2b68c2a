#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "evaluation/program/arena_layout.hpp"

namespace hone {

// Which parts of an arena's scratch memory are in use: every tensor of a run has its place, guard
// bytes between any two, noted in the arena's head for the parent to check. Freed memory is handed
// out again for the same size; reset() makes all of the region new. It counts in offsets, so it
// serves memory that only a GPU can touch as well. One thread.
class arena_ledger {
 public:
  void attach(arena_head& head) { head_ = &head; }
  // The region; (0, 0): none, nothing can be taken.
  void reset(std::uint64_t begin, std::uint64_t end);
  bool has_region() const { return end_ > 0; }
  // Freed memory is not handed out again before the next reset: on several streams a tensor's last
  // use may lie ahead of its release.
  void keep_freed() { reuses_ = false; }

  // The offset of so many bytes, or nothing where there is no room.
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  // What was taken before the last reset is forgotten in silence.
  void give_back(std::uint64_t offset);
  // The largest piece that can still be taken.
  std::uint64_t left() const;
  // Memory from here on has not been handed out since the last reset.
  std::uint64_t end_of_used() const { return next_; }

 private:
  struct block {
    std::uint64_t size = 0;  // rounded up
    std::uint64_t epoch = 0;
    std::uint32_t number = 0;  // in the head's list of allocations
  };
  std::uint32_t note(std::uint64_t offset, std::uint64_t bytes) const;

  arena_head* head_ = nullptr;
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t epoch_ = 0;  // counts resets: memory of an earlier epoch is not handed out again
  bool reuses_ = true;
  std::unordered_map<std::uint64_t, block> blocks_;  // in use, by offset
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint32_t>>>
      free_;  // size -> offsets and numbers
};

}  // namespace hone
