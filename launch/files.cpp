#include "launch/files.hpp"

#include "process/replace_file.hpp"
#include "process/write_failure.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

namespace hone {

namespace {

// Returns the path of `what`, searched in the program's folder and the three folders above it, in
// that order; in each, directly (a checkout) and then in share/hone (an installation). Returns an
// empty path if it is in none of them.
std::filesystem::path find_beside_program(const std::filesystem::path& what) {
  std::error_code ignored;
  std::filesystem::path at = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int up = 0; up < 4 && !at.empty(); ++up, at = at.parent_path()) {
    for (const auto& folder : {at, at / "share" / "hone"}) {
      if (std::filesystem::exists(folder / what)) return folder / what;
    }
  }
  return {};
}

}  // namespace

std::filesystem::path configs_folder() {
  if (const char* named = std::getenv("HONE_CONFIGS")) return named;
  if (std::filesystem::is_directory("configs/tasks")) return "configs";
  const auto tasks = find_beside_program("configs/tasks");
  return tasks.empty() ? "configs" : tasks.parent_path();
}

std::filesystem::path find_python_program(const std::string& name) {
  auto program = find_beside_program(name);
  if (program.empty())
    throw std::runtime_error(name + " is neither next to the program nor above it");
  return program;
}

choice_set task_names(const std::filesystem::path& folder) {
  choice_set names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.path().extension() == ".toml") names.insert(entry.path().stem());
  }
  return names;
}

std::filesystem::path find_task_file(const std::string& path_or_name) {
  if (path_or_name.ends_with(".py"))
    throw format_error(path_or_name, 0, "",
                       "is a Python module and not a task file; `hone task import " + path_or_name +
                           "` makes one from it");
  if (std::filesystem::is_regular_file(path_or_name)) return path_or_name;
  auto named = configs_folder() / "tasks" / (path_or_name + ".toml");
  if (std::filesystem::is_regular_file(named)) return named;
  std::string problem =
      "is neither a task file nor the name of one under " + (configs_folder() / "tasks").string();
  if (const std::string similar =
          find_similar(path_or_name, task_names(configs_folder() / "tasks"));
      !similar.empty())
    problem += " (did you mean " + similar + "?)";
  throw format_error(path_or_name, 0, "", problem);
}

std::vector<std::filesystem::path> find_task_files(const std::string& named) {
  if (!std::filesystem::is_directory(named)) return {find_task_file(named)};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(named)) {
    if (entry.is_regular_file() && entry.path().extension() == ".toml")
      files.push_back(entry.path());
  }
  if (files.empty()) throw format_error(named, 0, "", "holds no task file (*.toml)");
  std::sort(files.begin(), files.end());
  return files;
}

std::filesystem::path find_in_run(const std::filesystem::path& directory, const std::string& name) {
  auto path = directory / name;
  if (!std::filesystem::exists(path))
    throw std::runtime_error(path.string() +
                             " does not exist: no run has been started in that directory");
  return path;
}

std::string find_pool(const std::filesystem::path& named) {
  const std::filesystem::path inner = named / "pool";
  return (std::filesystem::is_directory(inner) ? inner : named).string();
}

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return read_source_file(path);
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  namespace fs = std::filesystem;
  if (!fs::exists(path) || fs::is_regular_file(path))
    return replace_file(fs::is_symlink(path) ? fs::canonical(path) : path, text, 0644);
  std::ofstream out(path, std::ios::binary);  // such as /dev/stdout
  out << text;
  out.close();
  if (!out) throw std::runtime_error(write_failure(path));
}

}  // namespace hone
