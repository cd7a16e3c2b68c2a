#include "process/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace hone {
namespace {

constexpr mode_t readable_by_all = 0644;
constexpr std::chrono::milliseconds retry_pause{10};
constexpr std::size_t max_command = 80;  // characters of a process's command that are shown

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

// Returns the words of a process's command, without the folder of its program; "?" for control
// characters and bytes that are not ASCII. Empty if the process is gone or is another user's.
std::string command_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/cmdline");
  std::string program;
  std::getline(in, program, '\0');
  std::string command = std::filesystem::path(program).filename();
  for (std::string word; std::getline(in, word, '\0');) command += " " + word;
  if (command.size() > max_command) command = command.substr(0, max_command) + "...";
  std::replace_if(
      command.begin(), command.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return command;
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

// A line of /proc/locks (proc(5)) reads "1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF".
std::string describe_holder(const std::filesystem::path& file) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0) return "";
  std::array<char, 64> place{};
  std::snprintf(place.data(), place.size(), "%02x:%02x:%lu", major(found.st_dev),
                minor(found.st_dev), static_cast<unsigned long>(found.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, where;
    pid_t process = 0;
    words >> number >> kind >> mode >> access >> process >> where;  // "->" before who waits
    if (!words || kind != "FLOCK" || where != place.data() || process <= 0) continue;
    const std::string command = command_of(process);
    return "process " + std::to_string(process) + (command.empty() ? "" : " (" + command + ")");
  }
  return "";
}

}  // namespace hone
