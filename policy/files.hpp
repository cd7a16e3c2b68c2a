#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tasks/safetensors.hpp"

namespace hone {

// Reports that a file of a policy is missing, damaged, or asks for an unsupported feature. The
// message names the file.
struct policy_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the contents of a file. Throws policy_error.
std::string read_policy_file(const std::filesystem::path& path);
// Writes a safetensors file. Throws policy_error.
void write_policy_tensors(const std::filesystem::path& path,
                          const std::vector<safetensor>& tensors);

}  // namespace hone
