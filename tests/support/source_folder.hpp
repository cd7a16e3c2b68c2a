#pragma once

#include <cstdlib>
#include <filesystem>

namespace hone::testing_support {

// Returns the project's folder, or the folder that HONE_SOURCE names: a bundle, which holds the
// parts of the project's folder that GPU tests read.
inline std::filesystem::path source_folder() {
  const char* moved = std::getenv("HONE_SOURCE");
  return moved != nullptr ? moved : HONE_SOURCE_DIR;
}

}  // namespace hone::testing_support
