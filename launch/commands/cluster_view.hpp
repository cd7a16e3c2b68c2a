#pragma once

#include <filesystem>

namespace hone {

// Prints the head and the nodes as their launchers see them. Returns 1 if one of them has ended or
// cannot be listed, else 0. Throws std::runtime_error.
int print_cluster(const std::filesystem::path& run);

}  // namespace hone
