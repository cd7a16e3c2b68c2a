#include "process/sync_to_disk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "process/unique_fd.hpp"

namespace hone {

bool sync_to_disk(const std::filesystem::path& path) {
  const unique_fd opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return opened && fsync(opened.get()) == 0;
}

}  // namespace hone
