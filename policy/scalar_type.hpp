#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace hone {

// Returns LibTorch's type for the dtype that a config.json names. Throws policy_error if weights of
// that dtype are not supported.
c10::ScalarType scalar_type(const std::string& name);

}  // namespace hone
