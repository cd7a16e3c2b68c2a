#include "policy/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "messages/json_depth.hpp"
#include "process/write_failure.hpp"
#include "tasks/format_error.hpp"

namespace hone {

std::string read_policy_file(const std::filesystem::path& path) {
  try {
    return read_source_file(path);
  } catch (const format_error& e) {
    throw policy_error(e.what());
  }
}

std::string read_policy_json(const std::filesystem::path& path) {
  std::string text = read_policy_file(path);
  if (is_nested_too_deeply(text))
    throw policy_error(path.string() + ": has values that are nested more than " +
                       std::to_string(max_json_depth) + " levels deep");
  return text;
}

mapped_file::mapped_file(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (fd < 0 || fstat(fd, &facts) != 0) {
    if (fd >= 0) close(fd);
    throw policy_error(path.string() + ": cannot be opened");
  }
  bytes_ = static_cast<std::size_t>(facts.st_size);
  void* mapped = bytes_ > 0 ? mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  close(fd);
  if (mapped == MAP_FAILED) throw policy_error(path.string() + ": cannot be read");
  base_ = mapped;
}

mapped_file::~mapped_file() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

void write_policy_tensors(const std::filesystem::path& path,
                          const std::vector<safetensor>& tensors) {
  std::ofstream out(path, std::ios::binary);
  write_safetensors(out, tensors);
  out.flush();
  if (!out) throw policy_error(write_failure(path));
}

}  // namespace hone
