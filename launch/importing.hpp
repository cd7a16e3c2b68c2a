#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "process/temporary_folder.hpp"
#include "tasks/importing/import_worker.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// How modules are imported.
struct import_options {
  int seconds = 300;  // of processor time for one file; large networks take 100 on slow cores
  int megabytes = 4096;
  bool varies_constants = false;
  std::string precision = "strict";
  std::string dtype;  // "": the file's own types
  bool fixes_sizes = false;
};

// Returns the settings of a worker. Modules run in `scratch`, and may read the folders `readable`.
// Throws std::runtime_error if Python is missing.
import_worker::settings worker_settings(const import_options& options,
                                        const std::filesystem::path& scratch,
                                        std::vector<std::filesystem::path> readable);

// Translates files with a ModelNew for tasks that were imported from a Model. Starts its process
// with the first file. Belongs to one thread.
class program_translator {
 public:
  // Programs may read the folders `readable`.
  program_translator(const import_options& options, std::vector<std::filesystem::path> readable);
  // `name`: what the document calls the file. Throws std::runtime_error if the task was not
  // imported from a module, or Python is missing.
  import_worker::translated_program translate(const std::filesystem::path& file, const task& t,
                                              const std::string& name);

 private:
  temporary_folder scratch_{"translation"};
  import_worker worker_;
};

// Returns the task of a module that was imported as a task of this name, with its data file. Throws
// std::runtime_error if Hone's own parser refuses it or its reference calls an operator that is not
// allowed.
task task_of(const imported_module& module, const std::string& name);

}  // namespace hone
