#include "process/user_cache.hpp"

#include <cstdlib>

namespace hone {

std::filesystem::path user_cache() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "hone";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "hone";
  return {};
}

}  // namespace hone
