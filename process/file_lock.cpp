#include "process/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace hone {
namespace {

constexpr mode_t readable_by_all = 0644;

[[noreturn]] void refuse(const std::filesystem::path& file) {
  throw std::runtime_error(file.string() + ": cannot be locked (" + std::strerror(errno) + ")");
}

// Network file systems lock only what is open for writing. A file of another user cannot be.
unique_fd open_lock(const std::filesystem::path& file) {
  unique_fd opened(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, readable_by_all));
  if (opened) {
    fchmod(opened.get(), readable_by_all);  // whatever the user's mask says
    return opened;
  }
  opened.reset(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) refuse(file);
  return opened;
}

}  // namespace

unique_fd try_lock_file(const std::filesystem::path& file) {
  unique_fd lock = open_lock(file);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) refuse(file);
  return {};
}

unique_fd lock_file(const std::filesystem::path& file) {
  unique_fd lock = open_lock(file);
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) refuse(file);
  }
  return lock;
}

}  // namespace hone
