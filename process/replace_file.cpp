#include "process/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "process/sync_to_disk.hpp"
#include "process/unique_fd.hpp"
#include "process/write_failure.hpp"

namespace hone {
namespace {

bool write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

void replace_file(const std::filesystem::path& file, const std::string& text, mode_t mode) {
  const std::string unfinished = file.string() + ".unfinished";
  unlink(unfinished.c_str());
  unique_fd out(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  const bool is_written = out && fchmod(out.get(), mode) == 0 && write_all(out.get(), text) &&
                          fsync(out.get()) == 0 && close(out.release()) == 0 &&
                          std::rename(unfinished.c_str(), file.c_str()) == 0;
  if (!is_written) {
    const std::string problem = write_failure(file);
    unlink(unfinished.c_str());
    throw std::runtime_error(problem);
  }
  // Some file systems cannot; then the name is as safe as they make it.
  sync_to_disk(file.has_parent_path() ? file.parent_path() : ".");
}

}  // namespace hone
