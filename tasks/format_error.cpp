#include "tasks/format_error.hpp"

#include <fstream>
#include <iterator>

namespace hone {

std::string read_source_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) throw format_error(path.string(), 0, "", "cannot be opened");
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) throw format_error(path.string(), 0, "", "cannot be read");
  return bytes;
}

}  // namespace hone
