#include "process/cut_line.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace hone {
namespace {

constexpr std::uintmax_t block_bytes = 4096;

}  // namespace

void remove_cut_line(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return;
  const std::uintmax_t size = std::filesystem::file_size(file);
  std::ifstream in(file, std::ios::binary);
  std::uintmax_t kept = size;
  for (bool is_found = false; !is_found && kept > 0;) {
    const std::uintmax_t begin = kept - std::min(kept, block_bytes);
    std::string block(kept - begin, '\0');
    in.seekg(static_cast<std::streamoff>(begin));
    if (!in.read(block.data(), static_cast<std::streamsize>(block.size()))) return;
    const std::size_t newline = block.rfind('\n');
    is_found = newline != std::string::npos;
    kept = is_found ? begin + newline + 1 : begin;
  }
  if (kept < size) std::filesystem::resize_file(file, kept);
}

}  // namespace hone
