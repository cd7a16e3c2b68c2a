#include "process/write_failure.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

namespace hone {
namespace {

constexpr std::uintmax_t min_space = 64U << 10U;  // bytes below which writes fail

}  // namespace

std::string write_failure(const std::filesystem::path& file) {
  const int error = errno;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  const bool is_full =
      error == ENOSPC || error == EDQUOT || (!unknown && space.available < min_space);
  std::string why;
  if (is_full) {
    why = "the disk is full";
  } else if (error != 0) {
    why = std::strerror(error);
  }
  return file.string() + ": cannot be written" + (why.empty() ? "" : " (" + why + ")");
}

}  // namespace hone
