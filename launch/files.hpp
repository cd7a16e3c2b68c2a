#pragma once

#include <filesystem>
#include <string>

#include "tasks/task_file.hpp"

namespace hone {

// The folder configs/ that comes with the program: HONE_CONFIGS, or in the current folder, or found
// upwards from the program.
std::filesystem::path configs_folder();

// The folder tasks/importing/ that comes with the program, found upwards from it. Throws
// std::runtime_error.
std::filesystem::path importing_folder();

// The Python that has torch for imports: HONE_PYTHON, else the one of the environment whose
// LibTorch this process has loaded. Throws std::runtime_error.
std::filesystem::path find_python();

// A path to a task file, or the name of one under configs/tasks. Throws format_error, saying where
// it looked.
std::filesystem::path find_task_file(const std::string& path_or_name);

// A whole file; "-" is standard input. Throws format_error.
std::string read_text(const std::string& path);

}  // namespace hone
