#pragma once

#include <cstdlib>
#include <filesystem>

namespace hone::testing_support {

// The project's own folder, or what HONE_SOURCE names: a bundle, which has of it what tests of GPUs
// read.
inline std::filesystem::path source_folder() {
  const char* moved = std::getenv("HONE_SOURCE");
  return moved != nullptr ? moved : HONE_SOURCE_DIR;
}

}  // namespace hone::testing_support
