#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace hone {

// Returns the value of an enumeration that has this name, or nullopt if none has. `names` holds the
// names of all values in their order, from the value 0 on.
template <class Enum, std::size_t N>
std::optional<Enum> value_named(const std::array<std::string_view, N>& names,
                                std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace hone
