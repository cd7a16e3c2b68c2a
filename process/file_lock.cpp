#include "process/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace hone {
namespace {

constexpr mode_t readable_by_all = 0644;
constexpr std::chrono::milliseconds retry_pause{10};

[[noreturn]] void refuse(const std::filesystem::path& file) {
  throw std::runtime_error(file.string() + ": cannot be locked (" + std::strerror(errno) + ")");
}

// Opens a file that is there. Network file systems lock only files that are open for writing. A
// file of another user cannot be. Returns an empty descriptor if there is none.
unique_fd open_existing(const std::filesystem::path& file) {
  constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  unique_fd opened(open(file.c_str(), O_RDWR | flags));
  if (!opened && errno != ENOENT) opened.reset(open(file.c_str(), O_RDONLY | flags));
  struct stat found {};
  if (!opened) return opened;
  if (fstat(opened.get(), &found) != 0) refuse(file);
  if (!S_ISREG(found.st_mode))
    throw std::runtime_error(file.string() + ": cannot be locked (it is not a regular file)");
  return opened;
}

// The permissions of a file that somebody else has made stay as they are: in a folder that all
// users share, its name may be a link to any file.
unique_fd open_lock(const std::filesystem::path& file) {
  unique_fd made(
      open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, readable_by_all));
  if (made) {
    fchmod(made.get(), readable_by_all);  // whatever the user's mask says
    return made;
  }
  unique_fd opened = open_existing(file);
  if (!opened) refuse(file);
  return opened;
}

}  // namespace

unique_fd try_lock_file(const std::filesystem::path& file, std::chrono::milliseconds patience) {
  unique_fd lock = open_lock(file);
  for (const auto end = std::chrono::steady_clock::now() + patience;;) {
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR) refuse(file);
    if (std::chrono::steady_clock::now() >= end) return {};
    std::this_thread::sleep_for(retry_pause);
  }
}

bool is_locked(const std::filesystem::path& file) {
  const unique_fd lock = open_existing(file);
  if (!lock && errno == ENOENT) return false;
  if (!lock) refuse(file);
  if (flock(lock.get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno != EWOULDBLOCK) refuse(file);
  return true;
}

unique_fd lock_file(const std::filesystem::path& file) {
  unique_fd lock = open_lock(file);
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) refuse(file);
  }
  return lock;
}

}  // namespace hone
