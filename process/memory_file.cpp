#include "process/memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "process/throw_errno.hpp"

namespace hone {

unique_fd memory_file(std::string_view bytes) {
  unique_fd file(memfd_create("hone-memory-file", MFD_CLOEXEC));
  if (!file || write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    throw_errno("cannot write a file in memory");
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace hone
