#pragma once

#include <filesystem>
#include <string>

namespace hone {

// Returns "FILE: cannot be written (the disk is full)", with the reason that errno or the file's
// disk shows. To be called right after a write has failed.
std::string write_failure(const std::filesystem::path& file);

}  // namespace hone
