#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hone {

// Returns `count` indices below `size`, spread evenly and in order; all of them if there are not
// more.
inline std::vector<std::size_t> evenly_spaced(std::size_t count, std::size_t size) {
  count = std::min(count, size);
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < count; ++i) indices.push_back(i * size / count);
  return indices;
}

}  // namespace hone
