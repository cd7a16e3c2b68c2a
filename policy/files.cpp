#include "policy/files.hpp"

#include <fstream>

#include "tasks/format_error.hpp"

namespace hone {

std::string read_policy_file(const std::filesystem::path& path) {
  try {
    return read_source_file(path);
  } catch (const format_error& e) {
    throw policy_error(e.what());
  }
}

void write_policy_tensors(const std::filesystem::path& path,
                          const std::vector<safetensor>& tensors) {
  std::ofstream out(path, std::ios::binary);
  write_safetensors(out, tensors);
  out.flush();
  if (!out) throw policy_error(path.string() + ": cannot be written");
}

}  // namespace hone
