#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tasks/task_file.hpp"

namespace hone {

// References that Inductor, PyTorch's compiler, has compiled ahead of time (AOTInductor): the
// baseline `inductor`. Each is a shared object for one case of one version of a task, for the kind
// of GPU on which it was compiled.

// Returns the file of a task's compiled reference for a case. It need not exist.
std::filesystem::path compiled_reference(const std::filesystem::path& folder, const task& t,
                                         const task_case& at);

struct compiling_options {
  std::filesystem::path python;   // interpreter with torch
  std::filesystem::path program;  // compile_references.py
  std::filesystem::path folder;   // for the compiled references and Inductor's own files
  std::size_t workers = 1;        // processes that compile at a time
  // Inductor measures its choices on the GPU, for one reference after another.
  bool max_autotune = false;
};

// Called when a reference has been compiled. `error`: why there is no file; empty if there is one.
using compiling_listener = std::function<void(const task& t, const task_case& at, double seconds,
                                              const std::string& error)>;

// Compiles the references of tasks for their timed cases on GPUs. Files that are there already stay
// as they are. Runs the references' source as Python, without confinement. Returns the number that
// could not be compiled. Throws std::runtime_error if the process that compiles ends early.
std::size_t compile_references(const std::vector<task>& tasks, const compiling_options& options,
                               const compiling_listener& listener);

}  // namespace hone
