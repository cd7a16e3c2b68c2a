#include "evaluation/sandbox/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "process/throw_errno.hpp"

namespace hone {
namespace {

constexpr std::uint64_t huge_page = 2U << 20U;
// Memory beyond this offset is returned to the system between sessions.
constexpr std::uint64_t kept_bytes = 64U << 20U;

std::uint64_t rounded_up(std::uint64_t n) { return (n + huge_page - 1) / huge_page * huge_page; }

}  // namespace

std::byte* map_arena(int descriptor, std::uint64_t bytes) {
  // One page more than needed is reserved, so that an aligned range lies in it. The rest is
  // unmapped.
  void* reserved = mmap(nullptr, bytes + huge_page, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) throw_errno("cannot reserve addresses for an arena");
  const auto begin = reinterpret_cast<std::uintptr_t>(reserved);
  const std::uintptr_t aligned = rounded_up(begin);
  if (aligned > begin) munmap(reserved, aligned - begin);
  if (begin + huge_page > aligned)
    munmap(reinterpret_cast<void*>(aligned + bytes), begin + huge_page - aligned);
  void* mapped = mmap(reinterpret_cast<void*>(aligned), bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (mapped == MAP_FAILED) throw_errno("cannot map an arena");
  return static_cast<std::byte*>(mapped);
}

std::uint64_t make_resident(std::byte* base, std::uint64_t begin, std::uint64_t end) {
  for (; begin < end; begin += huge_page) {
    // Only pages that exist can be collapsed into a huge page. If no huge page is available, the
    // small pages remain.
    for (std::uint64_t page = 0; page < huge_page; page += 4096) {
      volatile std::byte& first = base[begin + page];
      first = first;
    }
    madvise(base + begin, huge_page, collapse_advice);
  }
  return begin;
}

arena::arena(std::uint64_t bytes)
    : file_(memfd_create("hone-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes_(bytes) {
  if (!file_ || ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
    throw_errno("cannot make an arena");
  if (fcntl(file_.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    throw_errno("cannot seal an arena");
  base_ = map_arena(file_.get(), bytes);
}

arena::~arena() { munmap(base_, bytes_); }

void arena::make_resident(std::uint64_t end) {
  end = std::min(rounded_up(end), bytes_ / huge_page * huge_page);
  if (end > resident_end_) resident_end_ = hone::make_resident(base_, resident_end_, end);
}

void arena::poison(std::uint64_t begin, std::uint64_t end, unsigned char with) {
  end = std::min(end, bytes_);
  if (begin >= end) return;
  make_resident(end);
  std::memset(base_ + begin, with, end - begin);
}

void arena::forget() {
  const std::uint64_t kept = std::min(resident_end_, kept_bytes);
  remove_pages(kept);
  if (kept > 0) std::memset(base_, poison_byte, kept);
  std::memset(base_, 0, sizeof(arena_head));
}

std::uint64_t arena::release(std::uint64_t begin) {
  begin = std::min(std::max(rounded_up(begin), kept_bytes), bytes_);
  remove_pages(begin);
  return begin;
}

void arena::remove_pages(std::uint64_t begin) {
  if (begin < bytes_ && madvise(base_ + begin, bytes_ - begin, MADV_REMOVE) != 0)
    throw_errno("cannot clear an arena");
  resident_end_ = std::min(resident_end_, begin);
}

bool arena::is_poison(std::uint64_t begin, std::uint64_t end, unsigned char with) const {
  end = std::min(end, bytes_);
  if (begin >= end) return true;
  // All bytes are equal if each equals the next.
  return base_[begin] == std::byte{with} &&
         std::memcmp(base_ + begin, base_ + begin + 1, end - begin - 1) == 0;
}

}  // namespace hone
