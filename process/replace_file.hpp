#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace hone {

// Replaces the contents of a file in one step, so that a reader sees the old text or the new one,
// also after a loss of power, and sets its permissions: 0600 for secrets. Throws
// std::runtime_error.
void replace_file(const std::filesystem::path& file, const std::string& text, mode_t mode);

}  // namespace hone
