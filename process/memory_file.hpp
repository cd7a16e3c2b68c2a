#pragma once

#include <string_view>

#include "process/unique_fd.hpp"

namespace hone {

// Returns an anonymous file in memory that holds `bytes`, positioned at its start; it can be passed
// to another process. Throws std::system_error.
unique_fd memory_file(std::string_view bytes);

}  // namespace hone
