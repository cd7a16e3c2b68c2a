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

// A fixed set of files, outside of which a process finds no file. hide_others() installs a system
// call filter that stops every call that takes a path, and a handler that answers for the set: a
// file that is opened is a copy of what it held when it was added, and all others do not exist. No
// such call reaches the kernel's files, so that this also holds for code that has taken over the
// process. It needs no support by the kernel beyond seccomp (x86-64 only).
//
// Paths are compared as text, after "." and ".." are resolved, so a path through a symbolic link of
// a folder names a different file. Confined to one thread until hide_others() is called.
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
  // Adds a file or a folder whose contents are not copied: whoever opens it gets a copy of one
  // descriptor, rewound, so only one may use it at a time. A folder can be listed. For the calling
  // process and its forks, which must not use it at the same time either. Throws std::system_error.
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
