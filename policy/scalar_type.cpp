#include "policy/scalar_type.hpp"

#include "policy/files.hpp"

namespace hone {

at::ScalarType scalar_type(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  throw policy_error("a dtype of " + name + "; float32, bfloat16 and float16 are supported");
}

}  // namespace hone
