#pragma once

#include <signal.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "process/unique_fd.hpp"

namespace hone {

// A fixed set of files that a process sees, while all other files seem not to exist. hide_others()
// installs a system call filter that stops every call that takes a path, and a signal handler that
// answers the call. A file that is opened is a copy of the contents that it had when it was added.
// No path reaches the kernel, so the limit also holds for code that has taken over the process. It
// needs no support by the kernel except seccomp (x86-64 only).
//
// Paths are compared as text, after "." and ".." have been resolved. Confined to one thread until
// hide_others() is called.
class visible_files {
 public:
  visible_files() = default;
  ~visible_files();
  visible_files(const visible_files&) = delete;
  visible_files& operator=(const visible_files&) = delete;

  // Reads the files below `folders`, also through symbolic links, and the files among them. Forks
  // share the contents, which nothing can change. Must be called once. Throws std::system_error, or
  // std::runtime_error if the files have more than `max_bytes` together.
  void read(const std::vector<std::filesystem::path>& folders, std::uint64_t max_bytes);
  // Adds a file or a folder without reading it. Every opening returns a copy of the same
  // descriptor, rewound. Neither two readers in a process nor a fork may use it at the same time.
  // The entries of a folder can be listed. Throws std::system_error.
  void add_opened(const std::filesystem::path& path);

  // Hides all other files from this process, irrevocably. Files that a program creates are memory,
  // and have no name. Only calls for memory, time, threads, and descriptors that are open or
  // received are left. This object must live as long as the process. Throws std::system_error.
  void hide_others() const;

 private:
  struct file {
    std::string path;
    struct stat facts {};
    std::uint64_t begin = 0;  // of the contents, in contents_
  };
  struct opened_file {
    std::string path;
    unique_fd descriptor;
  };
  // Handles SIGSYS.
  static void on_call(int signal, siginfo_t* info, void* context);
  long answer(int call, const long long* arguments) const;
  long open_file(const char* path, int flags) const;
  long find_facts(const char* path, struct stat* into) const;
  const file* find(std::string_view path) const;
  const opened_file* find_opened(std::string_view path) const;

  std::string folder_;       // current folder, to which relative paths belong
  std::vector<file> files_;  // sorted by path
  std::vector<opened_file> opened_;
  const char* contents_ = nullptr;
  std::size_t contents_bytes_ = 0;
};

}  // namespace hone
