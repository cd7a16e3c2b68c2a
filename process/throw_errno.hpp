#pragma once

#include <cerrno>
#include <system_error>

namespace hone {

// Throws std::system_error for errno, as the system call that has just failed has set it.
[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace hone
