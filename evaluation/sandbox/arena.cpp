#include "evaluation/sandbox/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace hone {

arena::arena(std::uint64_t bytes) : file_(memfd_create("hone-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes_(bytes) {
  const auto fail = [] { throw std::system_error(errno, std::generic_category(), "cannot make an arena"); };
  if (!file_ || ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail();
  if (fcntl(file_.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) fail();
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) fail();
  base_ = static_cast<std::byte*>(mapped);
}

arena::~arena() { munmap(base_, bytes_); }

void arena::poison(std::uint64_t begin, std::uint64_t end) {
  end = std::min(end, bytes_);
  if (begin < end) std::memset(base_ + begin, poison_byte, end - begin);
}

void arena::forget() {
  if (madvise(base_, bytes_, MADV_REMOVE) != 0) throw std::system_error(errno, std::generic_category(), "cannot clear an arena");
}

bool arena::is_poison(std::uint64_t begin, std::uint64_t end) const {
  end = std::min(end, bytes_);
  for (std::uint64_t i = begin; i < end; ++i) {
    if (base_[i] != std::byte{poison_byte}) return false;
  }
  return true;
}

}  // namespace hone
