#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tasks/safetensors.hpp"

namespace hone::testing_support {

// Returns the bytes of a safetensors file of `tensors`.
inline std::string safetensors_text(const std::vector<safetensor>& tensors) {
  std::ostringstream out;
  write_safetensors(out, tensors);
  return std::move(out).str();
}

}  // namespace hone::testing_support
