#pragma once

#include <cstdint>

#include "evaluation/program/arena_layout.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// The advice to madvise() that makes small pages a huge one: MADV_COLLAPSE of Linux 6.1.
inline constexpr int collapse_advice = 25;

// Maps the arena file `descriptor` at a multiple of the huge page size, so that its pages can be
// huge in every process. The caller unmaps it. Throws std::system_error.
std::byte* map_arena(int descriptor, std::uint64_t bytes);

// Lets the pages of an arena that is mapped at `base` exist between two offsets, as huge ones where
// that is possible. `begin` is a multiple of the huge page size. Returns the end of the last page.
std::uint64_t make_resident(std::byte* base, std::uint64_t begin, std::uint64_t end);

// Host memory that a device shares with one of its sandbox sessions: the head, then inputs and
// parameters, then scratch memory. A page exists once it is poisoned or touched. Poisoned pages are
// huge if the system has huge pages: otherwise the choice of small pages moves a program's time by
// several per cent. The parent owns the arena; the child can neither grow nor shrink it. Confined
// to one thread.
class arena {
 public:
  explicit arena(std::uint64_t bytes);  // throws std::system_error
  ~arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  int descriptor() const { return file_.get(); }
  std::uint64_t size() const { return bytes_; }
  arena_head& head() { return *reinterpret_cast<arena_head*>(base_); }
  const arena_head& head() const { return *reinterpret_cast<const arena_head*>(base_); }
  std::byte* at(std::uint64_t offset) { return base_ + offset; }
  const std::byte* at(std::uint64_t offset) const { return base_ + offset; }

  // Lets the pages before an offset exist, as huge ones where that is possible.
  void make_resident(std::uint64_t end);
  // Fills the bytes between two offsets with poison. `with`: one of poison_bytes.
  void poison(std::uint64_t begin, std::uint64_t end, unsigned char with = poison_byte);
  // Erases the contents that earlier sessions left: some memory stays resident and is poisoned, the
  // rest is returned to the system. The head is zeroed. Throws std::system_error.
  void forget();
  // Returns the pages behind an offset to the system, except those of the kept memory. Returns the
  // offset from which contents are lost. Throws std::system_error.
  std::uint64_t release(std::uint64_t begin);
  // Returns true if every byte between two offsets still holds poison.
  bool is_poison(std::uint64_t begin, std::uint64_t end, unsigned char with = poison_byte) const;

 private:
  void remove_pages(std::uint64_t begin);

  unique_fd file_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t resident_end_ = 0;  // pages before this offset are resident
};

}  // namespace hone
