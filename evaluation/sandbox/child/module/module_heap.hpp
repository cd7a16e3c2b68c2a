#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace hone {

// Allocates the CPU tensors of a Python module in the part of an arena where the judge reads
// outputs. Unlike the memory of a TorchScript run, a tensor keeps its place until it is released,
// because a module may keep tensors between calls. Released memory is handed out again for tensors
// of its size class; classes are at most an eighth larger than the tensor. One per process, never
// deleted. Thread-safe.
class module_heap final : public c10::Allocator {
 public:
  // The heap is the memory [begin, end), which is mapped at `base` + offset.
  module_heap(char* base, std::uint64_t begin, std::uint64_t end);

  bool contains(const void* p) const { return p >= base_ && p < base_ + end_; }
  std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(p) - base_);
  }

  // Throws std::bad_alloc if there is no room.
  c10::DataPtr allocate(std::size_t n) override;
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    default_copy_data(dest, src, count);
  }

 private:
  static void release(void* data);
  std::uint64_t take(std::uint64_t size);

  char* base_;
  std::uint64_t end_;
  std::mutex lock_;
  std::uint64_t next_;          // memory from here on has never been handed out
  std::uint64_t resident_end_;  // pages before this offset exist
  std::unordered_map<std::uint64_t, std::uint64_t> sizes_;              // in use, by offset
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> free_;  // offsets by size
};

}  // namespace hone
