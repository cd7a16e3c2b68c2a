#include "policy/files.hpp"

#include "tasks/format_error.hpp"

namespace hone {

std::string read_policy_file(const std::filesystem::path& path) {
  try {
    return read_source_file(path);
  } catch (const format_error& e) {
    throw policy_error(e.what());
  }
}

}  // namespace hone
