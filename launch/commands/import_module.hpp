#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string_view>

#include "launch/importing.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Turns one PyTorch module into a task file in folder `out`, as `hone task import` does by default.
// Throws std::runtime_error, which says why the module cannot be imported.
task import_module(const std::filesystem::path& file, const std::filesystem::path& out);

// Adds the options --seconds and --megabytes, which limit the import of one file. `options` must
// outlive `command`.
void add_import_limits(CLI::App& command, import_options& options);

// Throws std::runtime_error if a file exists and has other bytes, which may be a person's work.
void require_no_other(const std::filesystem::path& file, std::string_view bytes);

}  // namespace hone
