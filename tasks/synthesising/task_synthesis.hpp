#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tasks/task_file.hpp"

namespace hone {

// Tasks that a program draws from a grammar of ATen operators, for policies to learn from. Each is
// checked to run, to give the same twice, to be exact enough in its own type, to depend on its
// inputs, and to take a time in a range.

struct synthesis_options {
  std::filesystem::path python;   // interpreter with torch
  std::filesystem::path program;  // synthesise.py
  std::size_t count = 100;
  std::uint64_t seed = 1;
  std::size_t workers = 1;  // processes that draw and check
  double min_us = 20;       // of a call
  double max_us = 5000;
  std::string device;  // times every task there: cpu or cuda:NUMBER; empty: an estimate for a GPU
  dtype type = dtype::float32;  // of floating-point tensors
  bool is_relaxed = false;      // whether the tasks admit TF32
  // Whether references are written as imported modules are (imported_names.py).
  bool looks_imported = false;
  // Tasks to keep away from: a program that is as similar to one of them as `bound` or more is left
  // out. Similarity is the share of paths of up to three operators that two references have in
  // common, whatever their names and sizes; equal graphs have 1.
  std::vector<task> given;
  double bound = 0.5;
};

// One program that was drawn.
struct synthesised {
  std::optional<task> made;  // absent if the program is no task
  std::string unfit;         // why it is none
  double us = 0;             // microseconds of a call, measured or estimated
  std::size_t operators = 0;
  std::string nearest;    // the given task that is most similar; empty without given tasks
  double similarity = 0;  // to that task
};

// Draws programs until `count` of them are tasks. The same options give the same tasks, unless they
// are timed on a device. Calls the listener for each program, in order. Throws std::runtime_error
// if the process that draws ends early.
void synthesise_tasks(const synthesis_options& options,
                      const std::function<void(const synthesised&)>& listener);

}  // namespace hone
