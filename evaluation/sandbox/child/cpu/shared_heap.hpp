#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace hone {

// Memory for what outlives a run, as the results of prepare() do. A session's kernels read it as
// well, because it is mapped before their process is forked. Confined to one thread of the session.
class shared_heap {
 public:
  // Reserves address space; pages exist once they are touched. Throws std::system_error.
  explicit shared_heap(std::uint64_t bytes);
  ~shared_heap();
  shared_heap(const shared_heap&) = delete;
  shared_heap& operator=(const shared_heap&) = delete;

  // Returns null if there is no room.
  void* allocate(std::size_t bytes);
  void release(void* data);
  bool contains(const void* p) const { return p >= base_ && p < base_ + bytes_; }

 private:
  char* base_ = nullptr;
  std::uint64_t bytes_;
  std::map<std::uint64_t, std::uint64_t> used_;  // sizes by offset
};

}  // namespace hone
