#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
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
// The same for a file of JSON, which must not be nested too deeply (messages/json_depth.hpp).
std::string read_policy_json(const std::filesystem::path& path);
// Maps a whole file into memory for reading: a file of any size takes no memory that the system
// cannot take back. The constructor throws policy_error.
class mapped_file {
 public:
  explicit mapped_file(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(base_), bytes_}; }

 private:
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

// Writes a safetensors file. Throws policy_error.
void write_policy_tensors(const std::filesystem::path& path,
                          const std::vector<safetensor>& tensors);

}  // namespace hone
