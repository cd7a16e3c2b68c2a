#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "evaluation/program/arena_layout.hpp"

namespace hone {

// Assigns the scratch memory of an arena to tensors. Every tensor of a run has its own place, with
// guard bytes between any two, and each place is entered into the arena's head for the parent to
// check. Freed memory is handed out again for the same size; reset() makes the whole region new.
// Works in offsets alone, so that the class also serves memory that only a GPU can access. Confined
// to one thread.
//
// A tensor may outlive the reset after which its memory belongs to a newer tensor. A release names
// only an address (LibTorch's raw_deallocate() has nothing else), so the ledger cannot tell which
// of the two tensors has ended. It therefore counts the tensors at an offset, and hands the offset
// out again only when all of them have been released.
class arena_ledger {
 public:
  // Sets the head that allocations are entered into. It must outlive this object.
  void attach(arena_head& head) { head_ = &head; }
  // Starts with a new region, of which nothing is taken. (0, 0): there is no region, and nothing
  // can be taken.
  void reset(std::uint64_t begin, std::uint64_t end);
  bool has_region() const { return end_ > 0; }
  // Keeps freed memory from being handed out again before the next reset. With several streams, the
  // device may still have to use a tensor that the host has released.
  void keep_freed() { reuses_ = false; }

  // Returns the offset of `bytes` bytes, or nullopt if there is no room.
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  // Releases one allocation at this offset. The memory is free once every allocation that take()
  // has returned there, before the last reset or after it, has been released.
  void give_back(std::uint64_t offset);
  // Returns the bytes of the region that have not been handed out yet, without guards.
  std::uint64_t left() const;
  // Returns the offset from which on nothing has been handed out since the last reset.
  std::uint64_t end_of_used() const { return next_; }

 private:
  struct block {
    std::uint64_t size = 0;  // rounded up
    std::uint64_t epoch = 0;
    std::uint32_t number = 0;   // in the head's list of allocations
    std::uint32_t holders = 0;  // allocations here that have not been released, of any epoch
  };
  std::uint32_t note(std::uint64_t offset, std::uint64_t bytes) const;
  void hold(std::uint64_t offset, std::uint64_t size, std::uint32_t number);

  arena_head* head_ = nullptr;
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t epoch_ = 0;  // counts resets; memory of an earlier epoch is not handed out again
  bool reuses_ = true;
  std::unordered_map<std::uint64_t, block> blocks_;  // in use, by offset
  // Freed blocks by size: offset and number.
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint32_t>>> free_;
};

}  // namespace hone
