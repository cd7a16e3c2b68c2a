#pragma once

#include <filesystem>

#include "tasks/task_file.hpp"

namespace hone {

// Turns one PyTorch module into a task file in folder `out`, as `hone task import` does by default.
// Throws std::runtime_error, which says why the module cannot be imported.
task import_module(const std::filesystem::path& file, const std::filesystem::path& out);

}  // namespace hone
