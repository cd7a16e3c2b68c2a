#include "process/cut_line.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>

namespace hone {
namespace {

constexpr std::uintmax_t block_bytes = 4096;

}  // namespace

void remove_cut_line(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return;
  const auto size = static_cast<std::uintmax_t>(in.tellg());
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
  std::error_code ignored;
  if (kept < size) std::filesystem::resize_file(file, kept, ignored);
}

}  // namespace hone
