#include "policy/files.hpp"

#include <fstream>
#include <iterator>

namespace hone {

std::string read_policy_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw policy_error(path.string() + ": cannot be opened");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace hone
