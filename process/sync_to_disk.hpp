#pragma once

#include <filesystem>

namespace hone {

// Makes the contents of a file, or the names in a folder, survive a loss of power. Returns false if
// the system cannot.
bool sync_to_disk(const std::filesystem::path& path);

}  // namespace hone
