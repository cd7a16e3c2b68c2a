#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/similar_names.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Returns the folder configs/ that comes with the program: the value of the environment variable
// HONE_CONFIGS, or else configs/ in the current folder if it contains tasks/, or else the first one
// in the program's folder, in the three folders above it, or in share/hone of such a folder. If
// there is none, returns "configs".
std::filesystem::path configs_folder();

// Returns a Python program that comes with this program, such as "tasks/importing/serve.py", from
// this program's folder, one of the three folders above it, or share/hone of such a folder. Throws
// std::runtime_error if it is in none of them.
std::filesystem::path find_python_program(const std::string& name);

// Returns the path of a task file. `path_or_name` is its path or the name of a task under
// configs/tasks. Throws format_error, which names the folder that was searched.
std::filesystem::path find_task_file(const std::string& path_or_name);

// Returns the names of the task files directly in a folder; none if there is no such folder.
choice_set task_names(const std::filesystem::path& folder);

// Returns the task files that `named` means, sorted: all *.toml of a folder and the folders below
// it, or what find_task_file() returns. Throws format_error.
std::vector<std::filesystem::path> find_task_files(const std::string& named);

// Returns a file or folder of a run's directory. Throws std::runtime_error if it is not there.
std::filesystem::path find_in_run(const std::filesystem::path& directory, const std::string& name);

// Returns the folder of a pool: `named`, or pool/ in it if that is the directory of a run.
std::string find_pool(const std::filesystem::path& named);

// Returns the contents of a file; "-" is standard input. Throws format_error.
std::string read_text(const std::string& path);
// Replaces the contents of a file, in one step if it is a regular one. Throws std::runtime_error if
// it cannot be written as a whole.
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace hone
