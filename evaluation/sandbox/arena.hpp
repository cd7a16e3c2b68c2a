#pragma once

#include <cstdint>
#include <span>

#include "evaluation/sandbox/arena_layout.hpp"
#include "evaluation/sandbox/child_process.hpp"

namespace hone {

// Memory that a device and one of its sandbox sessions share: a head, then inputs, then scratch memory for everything that a
// run allocates. Pages exist once they are touched. Owned by the parent; the child can neither grow nor shrink it.
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
  // Gives all pages back: the next session finds nothing that an earlier one left.
  void forget();
  // Whether every byte between two offsets still holds poison.
  bool is_poison(std::uint64_t begin, std::uint64_t end) const;

 private:
  unique_fd file_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace hone
