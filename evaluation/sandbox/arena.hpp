#pragma once

#include <cstdint>
#include <span>

#include "evaluation/sandbox/arena_layout.hpp"
#include "evaluation/sandbox/child_process.hpp"

namespace hone {

// Maps an arena where both processes can use its huge pages: at an address that is a multiple of
// their size. Throws std::system_error.
std::byte* map_arena(int descriptor, std::uint64_t bytes);

// Memory that a device and one of its sandbox sessions share: a head, then inputs, then scratch
// memory for everything that a run allocates. Pages exist once they are poisoned or touched;
// poisoned ones are huge pages where the system has them, since the luck of which small pages a
// program gets moves its time by several per cent. Owned by the parent; the child can neither grow
// nor shrink it. One thread.
class arena {
 public:
  explicit arena(std::uint64_t bytes);  // throws std::system_error
  ~arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  int descriptor() const { return file_.get(); }
  std::uint64_t size() const { return bytes_; }
  arena_head& head() { return *reinterpret_cast<arena_head*>(base_); }
  std::byte* at(std::uint64_t offset) { return base_ + offset; }
  const std::byte* at(std::uint64_t offset) const { return base_ + offset; }

  void poison(std::uint64_t begin, std::uint64_t end);
  // The next session finds nothing that an earlier one left: what stays resident is poisoned, the
  // rest given back.
  void forget();
  // Whether every byte between two offsets still holds poison.
  bool is_poison(std::uint64_t begin, std::uint64_t end) const;

 private:
  void make_resident(std::uint64_t end);

  unique_fd file_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t resident_end_ = 0;  // the pages before it have been asked for
};

}  // namespace hone
