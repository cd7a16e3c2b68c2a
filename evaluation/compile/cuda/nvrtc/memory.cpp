#include "evaluation/compile/cuda/nvrtc/memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <span>

namespace hone {
namespace {

constexpr std::uintptr_t largest_owned = 256U << 20U;

std::uintptr_t page_bytes() { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

void own_pages(std::uintptr_t begin, std::uintptr_t end) {
  begin = begin / page_bytes() * page_bytes();
  if (end > begin)
    (void)madvise(reinterpret_cast<void*>(begin), std::min(end - begin, largest_owned),
                  MADV_POPULATE_WRITE);
}

}  // namespace

void keep_memory() {
  constexpr int largest_in_heap = 32 << 20;
  constexpr int never_given_back = 1 << 30;
  constexpr int growth = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, largest_in_heap);
  mallopt(M_TRIM_THRESHOLD, never_given_back);
  mallopt(M_TOP_PAD, growth);
}

void own_memory(const void* heap) {
  own_pages(reinterpret_cast<std::uintptr_t>(heap), reinterpret_cast<std::uintptr_t>(sbrk(0)));
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void*) {
        const auto segments = std::span(library->dlpi_phdr, library->dlpi_phnum);
        const auto end_of = [&](const auto& segment) {
          return library->dlpi_addr + segment.p_vaddr + segment.p_memsz;
        };
        // The data before this address was relocated and then made read-only by the loader.
        std::uintptr_t writable = 0;
        for (const auto& segment : segments) {
          if (segment.p_type == PT_GNU_RELRO)
            writable = (end_of(segment) + page_bytes() - 1) / page_bytes() * page_bytes();
        }
        for (const auto& segment : segments) {
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0)
            own_pages(std::max<std::uintptr_t>(writable, library->dlpi_addr + segment.p_vaddr),
                      end_of(segment));
        }
        return 0;
      },
      nullptr);
}

std::uint64_t address_space() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * page_bytes();
}

}  // namespace hone
