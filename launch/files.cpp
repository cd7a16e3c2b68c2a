#include "launch/files.hpp"

#include <cstdlib>
#include <iostream>
#include <iterator>

namespace hone {

std::filesystem::path configs_folder() {
  if (const char* named = std::getenv("HONE_CONFIGS")) return named;
  if (std::filesystem::is_directory("configs/tasks")) return "configs";
  std::error_code ignored;
  std::filesystem::path at = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int up = 0; up < 4 && !at.empty(); ++up, at = at.parent_path()) {
    if (std::filesystem::is_directory(at / "configs" / "tasks")) return at / "configs";
  }
  return "configs";
}

std::filesystem::path find_task_file(const std::string& path_or_name) {
  if (std::filesystem::is_regular_file(path_or_name)) return path_or_name;
  const auto named = configs_folder() / "tasks" / (path_or_name + ".toml");
  if (std::filesystem::is_regular_file(named)) return named;
  throw format_error(path_or_name, 0, "", "is neither a task file nor the name of one under " + (configs_folder() / "tasks").string());
}

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return read_source_file(path);
}

}  // namespace hone
