#include "evaluation/sandbox/child/common/memory_limit.hpp"

#include <sys/resource.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace hone {

void limit_private_memory(std::uint64_t bytes) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmData:")) continue;
    const rlim_t most = std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024 + bytes;
    const rlimit limit{most, most};
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
      throw std::runtime_error("cannot limit the process's memory");
    return;
  }
  throw std::runtime_error("cannot tell how much memory the process has");
}

}  // namespace hone
